import fc from 'fast-check';
import { expect, test } from 'vitest';
import { loadHighs } from '../program/highs.js';
import type { OptimizerInput } from '../solution.js';
import { randomInput } from '../testing/random.js';
import { weightsOf } from '../testing/world.js';
import { packOutcome, unpackOutcome } from './packed-outcome.js';
import { packTask, unpackTask } from './packed-task.js';
import { type Outcome, TaskRunner } from './task.js';

const runner = new TaskRunner(await loadHighs());

function outcomeOf(input: OptimizerInput): Outcome {
  return runner.run({ input, deadlineSeconds: 10, isChecked: true });
}

/**
 * Some engines with replicas that are not ready, some without any that is; some demand that is only held; one measured mix,
 * one pool that has held for long; and traffic with a price.
 */
function damaged(input: OptimizerInput, seed: number): OptimizerInput {
  const { fleet } = input.state;
  const engines = input.state.engines.map((engine, at) => ({
    ...engine,
    replicas: engine.replicas.map((replica, index) => ({ ...replica, ready: (at * index + seed) % 3 > 0 })),
  }));
  const egressDollarsPerRequest = fleet.networkSeconds.map((row) => row.map((seconds) => seconds / 10));
  const demands = input.state.demands.flatMap((demand, at) =>
    (at + seed) % 3 === 0
      ? [
          { ...demand, priority: 1 },
          { ...demand, source: 'held' as const, isUnheard: true as const },
        ]
      : [demand],
  );
  const settledSecondsByPool = { [fleet.pools[0]!.id]: 600 };
  const referenceMix = new Map([
    [fleet.engines[0]!.id, { requestsPerWorkSecond: 5, outputTokensPerWorkSecond: 500 }],
  ]);
  return {
    ...input,
    referenceMix,
    state: {
      ...input.state,
      engines,
      demands,
      settledSecondsByPool,
      fleet: { ...fleet, egressDollarsPerRequest },
    },
  };
}

const inputs = fc
  .record({
    seed: fc.integer({ min: 1, max: 1000 }),
    frontends: fc.integer({ min: 1, max: 6 }),
    engines: fc.integer({ min: 1, max: 12 }),
    pools: fc.integer({ min: 1, max: 4 }),
    eligibility: fc.double({ min: 0.1, max: 1, noNaN: true }),
    load: fc.double({ min: 0.1, max: 2, noNaN: true }),
  })
  .map(({ seed, ...options }) => damaged(randomInput(seed, options), seed));

test('a solution comes out of a message as it went in', () => {
  fc.assert(
    fc.property(inputs, (input) => {
      const outcome = outcomeOf(input);
      expect(outcome.ok).toBe(true);
      expect(unpackOutcome(structuredClone(packOutcome(outcome)))).toEqual(outcome);
    }),
    { numRuns: 30 },
  );
});

test('backups are taken out of a message row by row, when they are asked for', () => {
  const packed = packOutcome(
    outcomeOf(randomInput(1, { frontends: 3, engines: 8, pools: 2, eligibility: 1, load: 0.7 })),
  );
  if (!packed.ok) throw new Error(packed.message);
  let taken = 0;
  const shares = {
    ...packed.solution.shares,
    get values() {
      taken++;
      return packed.solution.shares.values;
    },
  };
  const outcome = unpackOutcome({ ...packed, solution: { ...packed.solution, shares } });
  if (!outcome.ok) throw new Error(outcome.message);
  expect(taken).toBe(0);
  const { rows } = outcome.solution;
  const ofFirst = rows[0]!.backups.flatMap((backup) => backup.shares).length;
  expect(ofFirst).toBeGreaterThan(0);
  expect(taken).toBe(ofFirst);
});

test('a task solves to the same bytes after its way through a message', () => {
  fc.assert(
    fc.property(inputs, (input) => {
      const first = outcomeOf(input);
      const again = { ...input, previousWeights: first.ok ? weightsOf(first.solution) : [] };
      const task = { input: again, deadlineSeconds: 10, isChecked: true };
      const received = unpackTask(structuredClone(packTask(task)));
      expect(JSON.stringify(runner.run(received))).toBe(JSON.stringify(runner.run(task)));
    }),
    { numRuns: 30 },
  );
});

test('a failure comes out of a message as it went in', () => {
  const failure = { ok: false, code: 'WARDROP_SOLVER_FAILED', message: 'no' } as const;
  expect(unpackOutcome(structuredClone(packOutcome(failure)))).toEqual(failure);
});
