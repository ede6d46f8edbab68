/** Numbers that JSON has no words for. */
const WORDS: ReadonlyMap<string, number> = new Map([
  ['(infinity)', Number.POSITIVE_INFINITY],
  ['(-infinity)', Number.NEGATIVE_INFINITY],
  ['(nan)', Number.NaN],
  ['(-0)', -0],
]);

/** JSON of plain values in which every number stays what it is. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, withWords);
}

/** @throws {SyntaxError} for what is no JSON */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, fromWords);
}

function withWords(_key: string, value: unknown): unknown {
  if (typeof value !== 'number') return value;
  if (Number.isFinite(value)) return Object.is(value, -0) ? '(-0)' : value;
  if (Number.isNaN(value)) return '(nan)';
  return value > 0 ? '(infinity)' : '(-infinity)';
}

function fromWords(_key: string, value: unknown): unknown {
  return typeof value === 'string' && value.startsWith('(') ? (WORDS.get(value) ?? value) : value;
}
