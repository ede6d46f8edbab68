import {
  CLASS_MEASURES,
  FIGURE_DIGITS,
  type Figures,
  MEASURE_NAMES,
  type Measures,
} from '../measures/measures.js';
import type { Cell, Comparison } from './comparison.js';
import { type Estimate, estimate } from './interval.js';

/** A figure of a cell: its mean over seeds and its confidence interval; null where it does not apply, as to no requests. */
export function figure(cell: Cell, value: (run: Measures) => number | null): Estimate | null {
  const values = cell.runs.map(value).filter((item): item is number => item !== null && !Number.isNaN(item));
  return values.length === 0 ? null : estimate(values);
}

const SWINGS = ['amplitude', 'reversals'] as const;
const FLAT = MEASURE_NAMES.filter((name) => !(SWINGS as readonly string[]).includes(name));

/** The content of `--json FILE`: by scenario, then policy. `reversals` are per hour; `ci95` are half-widths. */
export function jsonReport({ cells, cpuSeconds, requests, assertions }: Comparison): object {
  const scenarios: Record<string, Record<string, object>> = {};
  for (const cell of cells) {
    scenarios[cell.scenario.id] ??= {};
    scenarios[cell.scenario.id]![cell.policy] = {
      ...means(cell, FLAT),
      oscillation: { ...means(cell, SWINGS), basis: cell.runs[0]!.basis },
      byClass: Object.fromEntries(
        classesOf(cell).map((id) => [id, means(cell, CLASS_MEASURES, ({ byClass }) => byClass[id]!)]),
      ),
      loadByEngine: meansOf(cell, (run) => run.loadByEngine),
      seeds: cell.seeds.length,
      ci95: { ...halfWidths(cell, FLAT), ...halfWidths(cell, SWINGS) },
    };
  }
  return { requests, cpuSeconds: rounded(cpuSeconds, 1), scenarios, assertions };
}

export function csvReport({ cells }: Comparison): string {
  const header = ['scenario', 'policy', 'seeds', ...MEASURE_NAMES.flatMap((name) => [name, `${name}_ci95`])];
  const rows = cells.map((cell) => [
    cell.scenario.id,
    cell.policy,
    cell.seeds.length,
    ...MEASURE_NAMES.flatMap((name) => {
      const result = figure(cell, (run) => run[name]);
      const digits = FIGURE_DIGITS[name];
      return result === null
        ? ['', '']
        : [rounded(result.mean, digits), rounded(result.halfWidth, digits) ?? ''];
    }),
  ]);
  return `${[header, ...rows].map((row) => row.join(',')).join('\n')}\n`;
}

/** Ids of the classes of a scenario that had requests. */
export function classesOf({ runs }: Cell): string[] {
  return Object.keys(runs[0]!.byClass).filter((id) =>
    runs.some(({ byClass }) => !Number.isNaN(byClass[id]!.meanE2eMs)),
  );
}

function means<Name extends keyof Figures>(
  cell: Cell,
  names: readonly Name[],
  of: (run: Measures) => Pick<Figures, Name> = (run) => run,
): object {
  return Object.fromEntries(
    names.map((name) => [name, rounded(figure(cell, (run) => of(run)[name])?.mean, FIGURE_DIGITS[name])]),
  );
}

function halfWidths(cell: Cell, names: readonly (keyof Figures)[]): object {
  return Object.fromEntries(
    names.map((name) => [name, rounded(figure(cell, (run) => run[name])?.halfWidth, FIGURE_DIGITS[name])]),
  );
}

function meansOf(cell: Cell, record: (run: Measures) => Readonly<Record<string, number>>): object {
  return Object.fromEntries(
    Object.keys(record(cell.runs[0]!)).map((key) => [
      key,
      rounded(figure(cell, (run) => record(run)[key]!)?.mean, 5),
    ]),
  );
}

function rounded(value: number | undefined, digits: number): number | null {
  return value === undefined || !Number.isFinite(value) ? null : Number(value.toFixed(digits));
}
