import type { Measures } from '../measures/measures.js';
import type { Scenario, Slo } from '../scenario.js';
import { indent, table } from '../text-table.js';
import type { Cell, Comparison } from './comparison.js';
import { classesOf, figure } from './figures.js';

/** A table for each scenario: means over seeds, with half the width of their 95 % confidence intervals. */
export function textReport({ cells, assertions, cpuSeconds, requests }: Comparison): string {
  const scenarios = [...new Set(cells.map(({ scenario }) => scenario))];
  const parts = scenarios.map((scenario) => {
    const own = cells.filter((cell) => cell.scenario === scenario);
    const tables = tablesOf(own).map((rows) => indent(table(rows)));
    return `${scenario.id}: ${aboutLine(scenario)}\n${tables.join('\n\n')}`;
  });
  const checked = assertions.map(
    ({ scenario, text, value, result }) =>
      `${result.padEnd(7)} ${scenario}: ${text}${value === null ? '' : ` (${Number(value.toPrecision(4))})`}`,
  );
  const speed = speedLine({ requests, cpuSeconds });
  return `${[...parts, ...(checked.length === 0 ? [] : [checked.join('\n')])].join('\n\n')}\n\n${notes}\n${speed}\n`;
}

export function aboutLine({ about, leftOut, slo, pools }: Scenario): string {
  const own = pools.flatMap((pool) => (pool.slo === undefined ? [] : [`of ${pool.id} ${times(pool.slo)}`]));
  const others = own.length === pools.length ? [] : [times(slo)];
  const sentences = [about, leftOut, `SLO: ${[...others, ...own].join('; ')}.`];
  return sentences.filter((sentence) => sentence !== undefined).join(' ');
}

function times({ ttftSeconds, e2eSeconds }: Slo): string {
  return `first token within ${milliseconds(ttftSeconds)}, complete within ${milliseconds(e2eSeconds)}`;
}

function milliseconds(seconds: number): string {
  return `${Math.round(1000 * seconds)} ms`;
}

/** The tables of one scenario, each with its header first: by policy and, where there are classes, by class. */
export function tablesOf(cells: readonly Cell[]): string[][][] {
  const isDivided = cells.some(({ scenario }) => scenario.classes.length > 1);
  const byClass = isDivided ? [[classHeader, ...cells.flatMap(classRows)]] : [];
  return [[header, ...cells.map(row)], ...byClass];
}

export function speedLine({ requests, cpuSeconds }: Pick<Comparison, 'requests' | 'cpuSeconds'>): string {
  return `${requests} measured requests, ${cpuSeconds.toFixed(0)} s of processor time.`;
}

const header = [
  'policy',
  'mean ms',
  'p99 ms',
  'TTFT p50',
  'TTFT p99',
  'in SLO',
  'hits',
  'moved',
  'moves/TV',
  'swing',
  'turns/h',
  'shed',
  'failed',
];

export const notes = [
  'mean, p99: from the first try to the complete answer, retries included; what failed counts with the time it took.',
  'in SLO: share of requests. hits: prompt tokens from cache. moved: follow-ups served elsewhere than the turn before.',
  'swing, turns/h: of weights (* of shares of requests) once the scenario has settled. ±: 95 % confidence over seeds.',
].join('\n');

const NONE = '–';

function row(cell: Cell): string[] {
  const basis = cell.runs[0]!.basis === 'flows' ? '*' : '';
  return [
    cell.policy,
    withInterval(cell, (run) => run.meanE2eMs, 0),
    withInterval(cell, (run) => run.p99E2eMs, 0),
    plain(cell, (run) => run.p50TtftMs, 0),
    plain(cell, (run) => run.p99TtftMs, 0),
    percent(cell, (run) => run.goodput),
    percent(cell, (run) => run.cacheHitShare),
    percent(cell, (run) => run.movedShare),
    plain(cell, (run) => run.movesPerTv, 2),
    plain(cell, (run) => run.amplitude, 2) + basis,
    plain(cell, (run) => run.reversals, 0),
    percent(cell, (run) => run.shedShare),
    percent(cell, (run) => run.failedShare),
  ];
}

const classHeader = ['policy', 'class', 'mean ms', 'p99 ms', 'in SLO', 'shed', 'failed'];

function classRows(cell: Cell): string[][] {
  return classesOf(cell).map((id) => [
    cell.policy,
    id,
    withInterval(cell, ({ byClass }) => byClass[id]!.meanE2eMs, 0),
    withInterval(cell, ({ byClass }) => byClass[id]!.p99E2eMs, 0),
    percent(cell, ({ byClass }) => byClass[id]!.goodput),
    percent(cell, ({ byClass }) => byClass[id]!.shedShare),
    percent(cell, ({ byClass }) => byClass[id]!.failedShare),
  ]);
}

function withInterval(cell: Cell, value: (run: Measures) => number, digits: number): string {
  const known = figure(cell, value);
  if (known === null) return NONE;
  const { mean, halfWidth } = known;
  return mean.toFixed(digits) + (Number.isNaN(halfWidth) ? '' : ` ±${halfWidth.toFixed(digits)}`);
}

function plain(cell: Cell, value: (run: Measures) => number | null, digits: number): string {
  return figure(cell, value)?.mean.toFixed(digits) ?? NONE;
}

function percent(cell: Cell, value: (run: Measures) => number): string {
  const known = figure(cell, value);
  return known === null ? NONE : `${(100 * known.mean).toFixed(1)} %`;
}
