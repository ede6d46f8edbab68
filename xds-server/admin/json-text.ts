/** Objects and lists are in pieces down to so many levels. */
const LEVELS = 3;

/**
 * A value as JSON, with two spaces for each level, in pieces. What can be iterated over is a list, which may be made while it is
 * read.
 */
export function jsonText(value: unknown): Iterable<string> {
  return piecesOf(value, LEVELS, '\n');
}

function* piecesOf(value: unknown, levels: number, lineBreak: string): Generator<string> {
  if (levels === 0 || typeof value !== 'object' || value === null) {
    // In strings, line breaks are escaped.
    yield JSON.stringify(value ?? null, null, 2).replaceAll('\n', lineBreak);
    return;
  }
  const isList = Symbol.iterator in value;
  const inner = `${lineBreak}  `;
  let before = isList ? '[' : '{';
  for (const [name, item] of isList ? nameless(value as Iterable<unknown>) : namedItems(value)) {
    yield before + inner + name;
    yield* piecesOf(item, levels - 1, inner);
    before = ',';
  }
  if (before !== ',') yield before;
  else yield lineBreak;
  yield isList ? ']' : '}';
}

function* nameless(items: Iterable<unknown>): Generator<readonly [string, unknown]> {
  for (const item of items) yield ['', item];
}

/** Without what is undefined. */
function* namedItems(value: object): Generator<readonly [string, unknown]> {
  for (const [name, item] of Object.entries(value)) {
    if (item !== undefined) yield [`${JSON.stringify(name)}: `, item];
  }
}
