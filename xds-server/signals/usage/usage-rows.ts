import type { EngineUsage } from '../../../wire/usage-report.js';
import { engineRow, type Field, type RowLayout } from '../../../wire/usage-report-rows.js';

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

type Combine = (a: number, b: number) => number;

/** Combines the counters and sums of two rows with the same name. */
function combine<T>(a: T, b: T, layout: RowLayout<T>, each: Combine): T {
  // Nearly all of what reports tell is of engines.
  if ((layout as unknown) === engineRow) return combineEngines(a as EngineUsage, b as EngineUsage, each) as T;
  const { numbers, lists } = partsOf(layout);
  const row: Record<string, unknown> = { ...(a as object) };
  for (const name of numbers) row[name] = each(a[name as keyof T] as number, b[name as keyof T] as number);
  for (const name of lists) {
    const other = b[name as keyof T] as readonly number[];
    row[name] = (a[name as keyof T] as readonly number[]).map((one, index) => each(one, other[index]!));
  }
  return row as T;
}

/** Field by field: by names that are only known when it runs, it takes several times as long. */
function combineEngines(a: EngineUsage, b: EngineUsage, each: Combine): EngineUsage {
  return {
    pool: a.pool,
    engine: a.engine,
    planned: each(a.planned, b.planned),
    diverted: each(a.diverted, b.diverted),
    ended: each(a.ended, b.ended),
    failures: each(a.failures, b.failures),
    status2xx: each(a.status2xx, b.status2xx),
    status4xx: each(a.status4xx, b.status4xx),
    status5xx: each(a.status5xx, b.status5xx),
    noResponse: each(a.noResponse, b.noResponse),
    retries: each(a.retries, b.retries),
    stalled: each(a.stalled, b.stalled),
    broken: each(a.broken, b.broken),
    firstTokenSecondsSum: each(a.firstTokenSecondsSum, b.firstTokenSecondsSum),
    firstTokenCount: each(a.firstTokenCount, b.firstTokenCount),
    wholeSecondsSum: each(a.wholeSecondsSum, b.wholeSecondsSum),
    wholeCount: each(a.wholeCount, b.wholeCount),
    paceSecondsSum: each(a.paceSecondsSum, b.paceSecondsSum),
    paceTokens: each(a.paceTokens, b.paceTokens),
    usageCount: each(a.usageCount, b.usageCount),
    promptTokens: each(a.promptTokens, b.promptTokens),
    cachedTokens: each(a.cachedTokens, b.cachedTokens),
    cachedOfTokens: each(a.cachedOfTokens, b.cachedOfTokens),
    outputTokens: each(a.outputTokens, b.outputTokens),
  };
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
