import { expect, it } from 'vitest';
import type { Scenario } from '../scenario.js';
import { aboutLine } from './text-report.js';

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
