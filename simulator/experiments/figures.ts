import type { Cell, Comparison } from './compare-policies.js';
import { type Estimate, estimate } from './interval.js';
import type { Measures } from './measures.js';

/** A figure of a cell: its mean over seeds and its confidence interval; null where it does not apply. */
export function figure(cell: Cell, value: (run: Measures) => number | null): Estimate | null {
  const values = cell.runs.map(value).filter((item) => item !== null);
  return values.length === 0 ? null : estimate(values);
}

type Value = (run: Measures) => number | null;

const columns: readonly (readonly [name: string, value: Value, digits: number])[] = [
  ['meanE2eMs', (run) => run.meanE2eMs, 1],
  ['p99E2eMs', (run) => run.p99E2eMs, 1],
  ['p50TtftMs', (run) => run.p50TtftMs, 1],
  ['p99TtftMs', (run) => run.p99TtftMs, 1],
  ['goodput', (run) => run.goodput, 5],
  ['cacheHitShare', (run) => run.cacheHitShare, 5],
  ['movesPerTv', (run) => run.movesPerTv, 3],
  ['shedShare', (run) => run.shedShare, 5],
  ['p50E2eMs', (run) => run.p50E2eMs, 1],
  ['p999E2eMs', (run) => run.p999E2eMs, 1],
  ['movedShare', (run) => run.movedShare, 5],
  ['failedShare', (run) => run.failedShare, 5],
  ['clientRetriesPerRequest', (run) => run.clientRetriesPerRequest, 5],
  ['frontendSpread', (run) => run.frontendSpread, 3],
  ['requests', (run) => run.requests, 0],
];

const swings: typeof columns = [
  ['amplitude', (run) => run.oscillation.amplitude, 4],
  ['reversals', (run) => run.oscillation.reversals, 1],
];

/** The content of `--json FILE`: by scenario, then policy. `reversals` are per hour; `ci95` are half-widths. */
export function jsonReport({ cells, cpuSeconds, requests }: Comparison): object {
  const scenarios: Record<string, Record<string, object>> = {};
  for (const cell of cells) {
    scenarios[cell.scenario.id] ??= {};
    scenarios[cell.scenario.id]![cell.policy] = {
      ...means(cell, columns),
      oscillation: { ...means(cell, swings), basis: cell.runs[0]!.oscillation.basis },
      seeds: cell.seeds.length,
      ci95: { ...halfWidths(cell, columns), ...halfWidths(cell, swings) },
    };
  }
  return { requests, cpuSeconds: rounded(cpuSeconds, 1), scenarios };
}

export function csvReport({ cells }: Comparison): string {
  const all = [...columns, ...swings];
  const header = ['scenario', 'policy', 'seeds', ...all.flatMap(([name]) => [name, `${name}_ci95`])];
  const rows = cells.map((cell) => [
    cell.scenario.id,
    cell.policy,
    cell.seeds.length,
    ...all.flatMap(([, value, digits]) => {
      const result = figure(cell, value);
      return result === null
        ? ['', '']
        : [rounded(result.mean, digits), rounded(result.halfWidth, digits) ?? ''];
    }),
  ]);
  return `${[header, ...rows].map((row) => row.join(',')).join('\n')}\n`;
}

function means(cell: Cell, of: typeof columns): object {
  return Object.fromEntries(
    of.map(([name, value, digits]) => [name, rounded(figure(cell, value)?.mean, digits)]),
  );
}

function halfWidths(cell: Cell, of: typeof columns): object {
  return Object.fromEntries(
    of.map(([name, value, digits]) => [name, rounded(figure(cell, value)?.halfWidth, digits)]),
  );
}

function rounded(value: number | undefined, digits: number): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toFixed(digits));
}
