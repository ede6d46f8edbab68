import { withoutUnit } from './document/units.js';
import type { ConfigProblem } from './problem.js';

/** Round trips in milliseconds between regions: rows are the frontends' regions, columns the engines'. */
export interface NetworkTable {
  readonly sources: readonly string[];
  readonly destinations: readonly string[];
  readonly rttMs: readonly (readonly number[])[];
}

export type NetworkTableResult =
  | { readonly table: NetworkTable }
  | { readonly problems: readonly ConfigProblem[] };

/** Reads a CSV table: first row `source,REGION,…`, then one row per region. Fields are neither quoted nor empty. */
export function parseNetworkTable(text: string, file: string): NetworkTableResult {
  const problems: ConfigProblem[] = [];
  const problem = (line: number, message: string) =>
    problems.push({ file, line, column: 1, path: '', message });
  const lines = text
    .split(/\r?\n/)
    .map((line, index) => ({ number: index + 1, fields: line.split(',').map((field) => field.trim()) }))
    .filter(({ fields }) => fields.some((field) => field !== ''));
  const [header, ...rows] = lines;
  if (header === undefined) {
    problem(1, 'the table is empty; its first row must be source,REGION,…');
    return { problems };
  }
  const destinations = header.fields.slice(1);
  for (const name of repeated(destinations))
    problem(header.number, `column ${JSON.stringify(name)} appears twice`);
  if (destinations.length === 0) {
    problem(header.number, 'the first row names no region (write source,REGION,…, with commas between)');
    return { problems };
  }
  const sources = rows.map(({ fields }) => fields[0]!);
  const lineOf = new Map<string, number>();
  for (const [at, name] of sources.entries()) {
    const { number } = rows[at]!;
    const first = lineOf.get(name);
    if (first === undefined) lineOf.set(name, number);
    else problem(number, `row ${JSON.stringify(name)} is already in line ${first}`);
  }
  const rttMs = rows.map(({ number, fields }) => {
    if (fields.length !== destinations.length + 1) {
      problem(
        number,
        `has ${fields.length - 1} values, but the first row names ${destinations.length} regions`,
      );
    }
    return fields.slice(1).map((field) => {
      const value = field === '' ? Number.NaN : Number(field);
      if (!(value >= 0 && value <= 60_000)) {
        const hint = withoutUnit(field, ['rttMs']);
        const message = `${JSON.stringify(field)} is not a number of milliseconds from 0 to 60000`;
        problem(number, hint === undefined ? message : `${message} (${hint})`);
      }
      return value;
    });
  });
  return problems.length > 0 ? { problems } : { table: { sources, destinations, rttMs } };
}

/** Milliseconds between two regions of the table; both must be in it. */
export function rttBetween(table: NetworkTable, source: string, destination: string): number {
  return table.rttMs[table.sources.indexOf(source)]![table.destinations.indexOf(destination)]!;
}

function repeated(names: readonly string[]): readonly string[] {
  const [once, again] = [new Set<string>(), new Set<string>()];
  for (const name of names) (once.has(name) ? again : once).add(name);
  return [...again];
}
