import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FleetState } from '../fleet/fleet-state.js';
import { checkPlan } from './check-plan.js';
import { handingOver } from './emergency.js';
import { evolvePlan } from './evolve.js';
import { endOf, partsOf } from './partition/segments.js';
import type { Plan } from './plan.js';
import { atOnce } from './steps.js';
import { evolveInput } from './testing/fleet.js';

const weights = { e0: 0.4, e1: 0.3, e2: 0.2, e3: 0.1 };

function setUp(demandRps = 100) {
  const input = evolveInput([{ weights, demandRps }], [1, 1, 1, 1]);
  return { input, plan: evolvePlan(input) };
}

/** The state with some engines' replicas not ready. */
function without(state: FleetState, dead: readonly string[]): FleetState {
  return {
    ...state,
    engines: state.engines.map((engine) =>
      dead.includes(engine.id)
        ? { ...engine, replicas: engine.replicas.map((replica) => ({ ...replica, ready: false })) }
        : engine,
    ),
  };
}

function emergency(
  dead: readonly string[],
  demandRps?: number,
): { before: Plan; after: Plan; state: FleetState } {
  const { input, plan } = setUp(demandRps);
  const state = without(input.state, dead);
  return { before: plan, after: atOnce(handingOver({ ...input, previous: plan, state })), state };
}

describe('handingOver', () => {
  it('is the plan in force while all of its engines can serve', () => {
    const { before, after } = emergency([]);
    expect(after).toBe(before);
  });

  it('gives exactly the segments of dead engines to their backups', () => {
    const { before, after } = emergency(['e0']);
    const { segments } = before.rows[0]!;
    segments.forEach(({ start, ownerId, backupId }, index) => {
      const expected = ownerId === 'e0' ? backupId : ownerId;
      for (const { segment } of partsOf(after.rows[0]!.segments, start, endOf(segments, index))) {
        expect(segment.ownerId).toBe(expected);
      }
    });
    expect(after.sequence).toBe(before.sequence + 1);
    expect(after.id).not.toBe(before.id);
  });

  it('passes the checks while the others have room, whichever engines die', () => {
    fc.assert(
      fc.property(fc.subarray(['e0', 'e1', 'e2', 'e3'], { maxLength: 3 }), (dead) => {
        const { input } = setUp();
        const { after, state } = emergency(dead, 50);
        expect(checkPlan({ ...input, plan: after, state })).toEqual([]);
        for (const { engineId } of after.rows[0]!.weights) expect(dead).not.toContain(engineId);
      }),
    );
  });

  it('spreads what has no living backup over the living engines by weight', () => {
    const { after } = emergency(['e0', 'e1', 'e2']);
    expect(after.rows[0]!.weights).toEqual([{ engineId: 'e3', weight: 1 }]);
  });

  it('uses the other engines of the pool when none of the row lives', () => {
    const input = evolveInput([{ weights: { e0: 1 } }], [1, 1, 1]);
    const plan = evolvePlan(input);
    const after = atOnce(handingOver({ ...input, previous: plan, state: without(input.state, ['e0']) }));
    expect(after.rows[0]!.weights).toEqual([
      { engineId: 'e1', weight: 0.5 },
      { engineId: 'e2', weight: 0.5 },
    ]);
  });

  it('leaves a row as it is when nobody lives', () => {
    const { before, after } = emergency(['e0', 'e1', 'e2', 'e3']);
    expect(after).toBe(before);
  });

  it('lowers the retry ratio to what the remaining capacity bears', () => {
    const { before, after } = emergency(['e0', 'e1'], 180);
    expect(before.rows[0]!.retryRatio).toBe(0.2);
    expect(after.rows[0]!.retryRatio).toBeLessThan(0.1);
  });

  it('leads back to the same owners when the engine returns', () => {
    const { before, after } = emergency(['e0']);
    const input = evolveInput([{ weights, demandRps: 100 }], [1, 1, 1, 1], { previous: after });
    const owners = (plan: Plan) =>
      plan.rows[0]!.segments.filter(({ ownerId }, i, all) => ownerId !== all[i - 1]?.ownerId).map((s) => [
        s.start,
        s.ownerId,
      ]);
    expect(owners(evolvePlan(input))).toEqual(owners(before));
  });
});
