/** Load of one replica by its own account; a value that is not on the page is undefined, never 0. */
export interface EngineReading {
  readonly waiting: number | undefined;
  readonly running: number | undefined;
}

/** Reads vLLM's Prometheus page; values of several models or data-parallel ranks add up. */
export function readVllmPage(text: string): EngineReading {
  return {
    waiting: sumOf(text, 'vllm:num_requests_waiting'),
    running: sumOf(text, 'vllm:num_requests_running'),
  };
}

/** Sum over all samples of a gauge; undefined without any, or when one is no count. */
function sumOf(text: string, name: string): number | undefined {
  let sum: number | undefined;
  for (const line of text.split('\n')) {
    if (!line.startsWith(name)) continue;
    // A sample is `name{labels} value [timestamp]`; label values may hold spaces and braces.
    const value = /^(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)/.exec(line.slice(name.length))?.[1];
    if (value === undefined) continue;
    const number = Number(value);
    if (!Number.isFinite(number) || number < 0) return undefined;
    sum = (sum ?? 0) + number;
  }
  return sum;
}
