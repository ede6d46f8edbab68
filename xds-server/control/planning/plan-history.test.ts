import { expect, it } from 'vitest';
import type { OptimizerInput } from '../../optimizer/index.js';
import type { Plan } from '../../plan/plan.js';
import { PlanHistory } from './plan-history.js';

/** As much of it as is looked at. */
function inputOf(frontends: number, engines: number): OptimizerInput {
  const state = {
    fleet: { frontends: Array(frontends) },
    engines: Array(engines),
    demands: Array(frontends),
  };
  return { state } as unknown as OptimizerInput;
}

function historyOf(plans: number, input: OptimizerInput): PlanHistory {
  const history = new PlanHistory();
  for (let sequence = 1; sequence <= plans; sequence++) {
    const id = sequence.toString(16).padStart(16, '0');
    history.add({ sequence, id, createdAtMs: 0, rows: [] } as unknown as Plan, input, null);
  }
  return history;
}

it('plans of a large fleet are forgotten before they take much memory, those of a small one are kept for long', () => {
  const large = historyOf(1_010, inputOf(64, 1_000));
  expect(large.find('990')).toBeDefined();
  expect(large.find('980')).toBeUndefined();
  const small = historyOf(1_010, inputOf(3, 5));
  expect(small.find('11')).toBeDefined();
  expect(small.find('10')).toBeUndefined();
});

it('two plans are kept of any fleet, to tell what changed', () => {
  const history = historyOf(5, inputOf(10_000, 1_000));
  expect(history.since(undefined).map(({ sequence }) => sequence)).toEqual([4, 5]);
  expect(() => history.since('3')).toThrow(
    /^plan 3 is not kept; kept: 4 \(0{15}4, \S+ to 5 \(0{15}5, \S+\)$/,
  );
});

it('a plan is found by its number and by its id; of several with one id the latest is meant', () => {
  const history = historyOf(3, inputOf(1, 1));
  expect(history.find('0000000000000002')!.sequence).toBe(2);
  expect(history.after(history.find('2')!)!.sequence).toBe(3);
  expect(history.after(history.find('3')!)).toBeUndefined();
  const again = { sequence: 4, id: '0000000000000002', createdAtMs: 0, rows: [] } as unknown as Plan;
  history.add(again, inputOf(1, 1), null);
  expect(history.find('0000000000000002')!.sequence).toBe(4);
});
