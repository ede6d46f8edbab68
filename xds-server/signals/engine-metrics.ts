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

/** A sample is `name{labels} value [timestamp]`; label values may hold spaces and braces. */
const SAMPLE = /(?:\{(?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*\})?[ \t]+(\S+)/y;

/** Sum over all samples of a gauge; undefined without any, or when one is no count. */
function sumOf(text: string, name: string): number | undefined {
  let sum: number | undefined;
  for (let at = text.indexOf(name); at >= 0; at = text.indexOf(name, at + name.length)) {
    if (at > 0 && text[at - 1] !== '\n') continue;
    SAMPLE.lastIndex = at + name.length;
    const value = SAMPLE.exec(text)?.[1];
    if (value === undefined) continue;
    const number = Number(value);
    if (!Number.isFinite(number) || number < 0) return undefined;
    sum = (sum ?? 0) + number;
  }
  return sum;
}
