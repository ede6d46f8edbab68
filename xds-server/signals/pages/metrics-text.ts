/** One line of a metrics page: a value of a series. */
export interface Sample {
  readonly name: string;
  readonly labels: ReadonlyMap<string, string>;
  /** As written; may be NaN, infinite or negative. */
  readonly value: number;
}

/** Name, then labels in braces whose values may hold anything but a bare quote, then the value; the rest does not matter. */
const SAMPLE =
  /[ \t]*([a-zA-Z_:][a-zA-Z0-9_:]*)(?:[ \t]*\{((?:[^"}\n]|"(?:[^"\\\n]|\\.)*")*)\})?[ \t]+([^ \t\r\n]+)/y;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\\n]|\\.)*)"/g;

/** Samples that are read of one page; one more tells that there are too many. No page costs more than its length. */
export const MOST_SAMPLES = 4_096;
/** Nobody's labels are as long as that. */
const MOST_LINE_CHARS = 16_384;

/**
 * Samples with the names that are wanted, from a page in Prometheus' or OpenMetrics' text format; at most one more than
 * `MOST_SAMPLES`. Everything else is skipped without a look: comments, other metrics, time stamps and exemplars. A line that
 * begins with a wanted name and makes no sense is a sample without a number.
 */
export function readSamples(text: string, wanted: ReadonlySet<string>): readonly Sample[] {
  const samples: Sample[] = [];
  // Most lines are of other metrics, and most of these have names of another length: no need to cut these out.
  const lengths = new Set([...wanted].map((name) => name.length));
  for (let at = 0; at < text.length && samples.length <= MOST_SAMPLES; at = nextLine(text, at)) {
    const start = skipBlanks(text, at);
    const end = endOfName(text, start);
    if (!lengths.has(end - start)) continue;
    const name = text.slice(start, end);
    if (!wanted.has(name)) continue;
    const match = nextLine(text, start) - start > MOST_LINE_CHARS ? null : sampleAt(text, start);
    samples.push({ name, labels: labelsOf(match?.[2]), value: numberOf(match?.[3] ?? '') });
  }
  return samples;
}

function sampleAt(text: string, at: number): RegExpExecArray | null {
  SAMPLE.lastIndex = at;
  return SAMPLE.exec(text);
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end + 1;
}

function skipBlanks(text: string, at: number): number {
  while (text[at] === ' ' || text[at] === '\t') at++;
  return at;
}

function endOfName(text: string, at: number): number {
  for (; ; at++) {
    const code = text.charCodeAt(at);
    const isLetter = (code | 0x20) >= 0x61 && (code | 0x20) <= 0x7a;
    const isDigit = code >= 0x30 && code <= 0x3a; // and the colon
    if (!isLetter && !isDigit && code !== 0x5f) return at;
  }
}

function labelsOf(text: string | undefined): ReadonlyMap<string, string> {
  const labels = new Map<string, string>();
  for (const [, name, value] of (text ?? '').matchAll(LABEL)) labels.set(name!, unescaped(value!));
  return labels;
}

function unescaped(value: string): string {
  return value.replace(/\\(.)/g, (_, char: string) => (char === 'n' ? '\n' : char));
}

/** `+Inf`, `-Inf` and `NaN` are written so in both formats. */
function numberOf(text: string): number {
  const infinite = /^([+-]?)inf(?:inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return text === '' ? Number.NaN : Number(text);
}
