/** Numbers that JSON has no words for. */
const WORDS: ReadonlyMap<string, number> = new Map([
  ['(infinity)', Number.POSITIVE_INFINITY],
  ['(-infinity)', Number.NEGATIVE_INFINITY],
  ['(nan)', Number.NaN],
  ['(-0)', -0],
]);
/** A text that is such a word has more of these before it. */
const ESCAPE = '(';

/** JSON of plain values in which every number and every text stays what it is. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, withWords);
}

/** @throws {SyntaxError} for what is no JSON */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, fromWords);
}

function withWords(_key: string, value: unknown): unknown {
  if (typeof value === 'string') return isWord(value) ? ESCAPE + value : value;
  if (typeof value !== 'number') return value;
  if (Number.isFinite(value)) return Object.is(value, -0) ? '(-0)' : value;
  if (Number.isNaN(value)) return '(nan)';
  return value > 0 ? '(infinity)' : '(-infinity)';
}

function fromWords(_key: string, value: unknown): unknown {
  if (typeof value !== 'string' || !isWord(value)) return value;
  return WORDS.get(value) ?? value.slice(ESCAPE.length);
}

/** Also with `ESCAPE` before it, any number of times. */
function isWord(text: string): boolean {
  return text.startsWith(ESCAPE) && WORDS.has(text.replace(/^\(+/, ESCAPE));
}
