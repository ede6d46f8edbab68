import type { Field, RowLayout } from '../../wire/usage-report-rows.js';

/** What names a row of a usage report among the others of its kind. */
export function rowKey<T>(row: T, { fields }: RowLayout<T>): string {
  const names = Object.entries<Field>(fields).filter(([, field]) => isName(field));
  return names.map(([name]) => String(row[name as keyof T])).join(' ');
}

export function addRows<T>(a: T, b: T, layout: RowLayout<T>): T {
  return combine(a, b, layout, (one, other) => one + other);
}

/** What has been counted since `before`. */
export function differenceOf<T>(now: T, before: T, layout: RowLayout<T>): T {
  return combine(now, before, layout, (later, earlier) => Math.max(0, later - earlier));
}

/** Combines the counters and sums of two rows with the same name. */
function combine<T>(a: T, b: T, { fields }: RowLayout<T>, each: (a: number, b: number) => number): T {
  const row: Record<string, unknown> = {};
  for (const [name, field] of Object.entries<Field>(fields)) {
    const one = a[name as keyof T];
    const other = b[name as keyof T];
    if (isName(field)) row[name] = one;
    else if (Array.isArray(one)) {
      row[name] = one.map((value: number, index) => each(value, (other as number[])[index]!));
    } else row[name] = each(one as number, other as number);
  }
  return row as T;
}

function isName({ kind }: Field): boolean {
  return kind === 'hash' || kind === 'integer';
}
