import { expect, it } from 'vitest';
import type { Measures } from '../measures/measures.js';
import { FIGURE_DIGITS } from '../measures/measures.js';
import type { Scenario } from '../scenario.js';
import type { Cell } from './comparison.js';
import { aboutLine, tablesOf } from './text-report.js';

it('tells what a scenario is about, what it leaves out, and the SLO', () => {
  const scenario = {
    about: 'A fleet.',
    slo: { ttftSeconds: 0.5, e2eSeconds: 2 },
    pools: [{ id: 'm', eligible: [true] }],
  } as unknown as Scenario;
  const slo = 'SLO: first token within 500 ms, complete within 2000 ms.';
  expect(aboutLine(scenario)).toBe(`A fleet. ${slo}`);
  expect(aboutLine({ ...scenario, leftOut: 'Priorities.' })).toBe(`A fleet. Priorities. ${slo}`);
});

/** All figures are this one. */
const run = (figure: number) =>
  ({
    ...Object.fromEntries(Object.keys(FIGURE_DIGITS).map((name) => [name, figure])),
    byClass: { none: { meanE2eMs: 1000 * figure }, rare: { meanE2eMs: figure } },
  }) as unknown as Measures;

it('figures are of the runs that had requests, and a dash where none had', () => {
  const cell = { scenario: { classes: [{}, {}] }, policy: 'p' };
  const rows = (...figures: number[]) => tablesOf([{ ...cell, runs: figures.map(run) } as unknown as Cell]);
  expect(rows(0.5, Number.NaN)[0]![1]!.slice(0, 6)).toEqual(['p', '1', '1', '1', '1', '50.0 %']);
  expect(
    rows(Number.NaN, 0.5)[1]!
      .slice(1)
      .map((row) => row.slice(0, 3)),
  ).toEqual([
    ['p', 'none', '500'],
    ['p', 'rare', '1'],
  ]);
  expect(rows(Number.NaN)[0]![1]!.slice(0, 6)).toEqual(['p', '–', '–', '–', '–', '–']);
  expect(rows(Number.NaN)[1]).toHaveLength(1);
});
