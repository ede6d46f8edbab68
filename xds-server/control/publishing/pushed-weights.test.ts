import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { weightsToPush } from './pushed-weights.js';

const planOf = (pools: Readonly<Record<string, Readonly<Record<string, number>>>>) => ({
  rows: Object.entries(pools).map(([poolId, weights]) => ({
    frontendId: 'f',
    poolId,
    weights: Object.entries(weights).map(([engineId, weight]) => ({ engineId, weight })),
  })),
});

describe('the weights to push', () => {
  it('are none while no engine of any pool differs by more than the least', () => {
    const pushed = planOf({ m: { a: 0.5, b: 0.5 } });
    expect(weightsToPush(pushed, planOf({ m: { a: 0.515, b: 0.485 } }), 0.02)).toBeUndefined();
    expect(weightsToPush(pushed, pushed, 0)).toBeUndefined();
  });

  it('are new for pools that differ enough, and as they were for the others', () => {
    const pushed = planOf({ m: { a: 0.5, b: 0.5 }, n: { a: 0.5, b: 0.5 } });
    const wanted = planOf({ m: { a: 0.6, b: 0.4 }, n: { a: 0.51, b: 0.49 } });
    expect(weightsToPush(pushed, wanted, 0.02)).toEqual({ rows: [wanted.rows[0], pushed.rows[1]] });
  });

  it('are due as soon as an engine gets nothing any more, or something again, however little it is', () => {
    const pushed = planOf({ m: { a: 0.99, b: 0.01 } });
    const without = planOf({ m: { a: 1 } });
    expect(weightsToPush(pushed, without, 0.02)).toEqual(without);
    expect(weightsToPush(without, pushed, 0.02)).toEqual(pushed);
    const other = planOf({ m: { a: 0.99, c: 0.01 } });
    expect(weightsToPush(pushed, other, 0.02)).toEqual(other);
  });

  it('never leave an engine further than the least from the plan, however slowly it drifts', () => {
    const steps = fc.array(fc.integer({ min: 10, max: 90 }), { minLength: 1, maxLength: 50 });
    fc.assert(
      fc.property(steps, fc.constantFrom(0, 0.02, 0.1), (percents, least) => {
        let pushed = planOf({ m: { a: 0.5, b: 0.5 } });
        for (const percent of percents) {
          const wanted = planOf({ m: { a: percent / 100, b: 1 - percent / 100 } });
          pushed = (weightsToPush(pushed, wanted, least) as typeof pushed | undefined) ?? pushed;
          const [a, b] = [pushed.rows[0]!.weights[0]!.weight, wanted.rows[0]!.weights[0]!.weight];
          expect(Math.abs(a - b)).toBeLessThanOrEqual(least);
        }
      }),
    );
  });
});
