import type { Field, RowLayout } from '../../../wire/usage-report-rows.js';

/** What names a row of a usage report among the others of its kind. */
export function rowKey<T>(row: T, layout: RowLayout<T>): string {
  let key = '';
  for (const name of partsOf(layout).names) key += `${String(row[name as keyof T])} `;
  return key;
}

export function addRows<T>(a: T, b: T, layout: RowLayout<T>): T {
  return combine(a, b, layout, (one, other) => one + other);
}

/** What has been counted since `before`. */
export function differenceOf<T>(now: T, before: T, layout: RowLayout<T>): T {
  return combine(now, before, layout, (later, earlier) => Math.max(0, later - earlier));
}

/** Combines the counters and sums of two rows with the same name. */
function combine<T>(a: T, b: T, layout: RowLayout<T>, each: (a: number, b: number) => number): T {
  const { numbers, lists } = partsOf(layout);
  const row: Record<string, unknown> = { ...(a as object) };
  for (const name of numbers) row[name] = each(a[name as keyof T] as number, b[name as keyof T] as number);
  for (const name of lists) {
    const other = b[name as keyof T] as readonly number[];
    row[name] = (a[name as keyof T] as readonly number[]).map((one, index) => each(one, other[index]!));
  }
  return row as T;
}

/** The fields of a row by what is done with them. */
interface Parts {
  readonly names: readonly string[];
  readonly numbers: readonly string[];
  readonly lists: readonly string[];
}

const known = new Map<unknown, Parts>();

/** Found out once for every layout: reports have thousands of rows. */
function partsOf<T>(layout: RowLayout<T>): Parts {
  const found = known.get(layout);
  if (found !== undefined) return found;
  const fields = Object.entries<Field>(layout.fields);
  const of = (...kinds: readonly Field['kind'][]) =>
    fields.filter(([, { kind }]) => kinds.includes(kind)).map(([name]) => name);
  const parts = {
    names: of('hash', 'integer'),
    numbers: of('counter', 'sum'),
    lists: of('counters', 'sums'),
  };
  known.set(layout, parts);
  return parts;
}
