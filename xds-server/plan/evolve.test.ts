import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkPlan } from './check-plan.js';
import { type EvolveInput, evolvePlan } from './evolve.js';
import { endOf, partsOf } from './partition/segments.js';
import { HASH_SPACE, type Plan, type PlanRow } from './plan.js';
import { evolveInput, profile, type TestRow } from './testing/fleet.js';

function evolve(previous: Plan | null, rows: readonly TestRow[], replicas: readonly number[]): Plan {
  return evolvePlan(evolveInput(rows, replicas, { previous }));
}

function check(input: EvolveInput, plan: Plan) {
  return checkPlan({ plan, state: input.state, profiles: input.profiles, policy: input.policy });
}

function weightsOf(plan: Plan, row = 0): Record<string, number> {
  return Object.fromEntries(plan.rows[row]!.weights.map(({ engineId, weight }) => [engineId, weight]));
}

/** Share of the space whose owner differs. */
function moved(before: PlanRow, after: PlanRow): number {
  return (
    after.segments
      .flatMap(({ start, ownerId }, index) =>
        partsOf(before.segments, start, endOf(after.segments, index))
          .filter(({ segment }) => segment.ownerId !== ownerId)
          .map((part) => part.end - part.start),
      )
      .reduce((sum, length) => sum + length, 0) / HASH_SPACE
  );
}

const threeRows: TestRow[] = [
  { frontendId: 'east', weights: { e0: 0.2, e1: 0.8 }, demandRps: 60 },
  { frontendId: 'north', weights: { e2: 1 }, demandRps: 10 },
  { frontendId: 'west', weights: { e0: 0.5, e1: 0.3, e2: 0.2 }, demandRps: 80 },
];

/** Up to three frontends with random weights over five engines that have room for all. */
const randomRows = fc
  .array(
    fc
      .tuple(
        fc.array(fc.oneof(fc.double({ min: 0.01, max: 1, noNaN: true }), fc.constant(0)), {
          minLength: 5,
          maxLength: 5,
        }),
        fc.double({ min: 0, max: 50, noNaN: true }),
      )
      .filter(([weights]) => Math.max(...weights) > 0),
    { minLength: 3, maxLength: 3 },
  )
  .map((list) =>
    list.map(([weights, demandRps], index): TestRow => {
      const sum = weights.reduce((total, weight) => total + weight, 0);
      return {
        frontendId: `f${index}`,
        demandRps,
        weights: Object.fromEntries(weights.map((weight, engine) => [`e${engine}`, weight / sum])),
      };
    }),
  );

describe('evolvePlan', () => {
  it('makes plans that pass the independent checks, one after another', () => {
    fc.assert(
      fc.property(fc.array(randomRows, { minLength: 1, maxLength: 6 }), (steps) => {
        let previous: Plan | null = null;
        for (const rows of steps) {
          const input = evolveInput(rows, [2, 2, 2, 2, 2], { previous });
          previous = evolvePlan(input);
          expect(check(input, previous)).toEqual([]);
        }
      }),
    );
  });

  it('is a function of its input, byte for byte, and its id one of the content', () => {
    const first = evolve(null, threeRows, [1, 1, 1]);
    const again = evolve(null, threeRows, [1, 1, 1]);
    expect(JSON.stringify(again)).toBe(JSON.stringify(first));
    expect(first.id).toMatch(/^[0-9a-f]{16}$/);
    const later = evolvePlan({ ...evolveInput(threeRows, [1, 1, 1]), createdAtMs: 1 });
    expect(later.id).toBe(first.id);
    expect(evolve(null, threeRows.slice(1), [1, 1, 1]).id).not.toBe(first.id);
  });

  it('returns the plan in force itself when the same solution comes again', () => {
    fc.assert(
      fc.property(randomRows, randomRows, (before, rows) => {
        const replicas = [2, 2, 2, 2, 2];
        const plan = evolve(evolve(null, before, replicas), rows, replicas);
        expect(evolve(plan, rows, replicas)).toBe(plan);
      }),
    );
  });

  it('keeps weights, partition and id while the solution stays in the dead band', () => {
    const plan = evolve(null, [{ weights: { e0: 0.5, e1: 0.5 } }], [1, 1]);
    expect(evolve(plan, [{ weights: { e0: 0.492, e1: 0.508 } }], [1, 1])).toBe(plan);
    const next = evolve(plan, [{ weights: { e0: 0.48, e1: 0.52 } }], [1, 1]);
    expect(weightsOf(next).e0).toBeCloseTo(0.48, 8);
    expect(next.sequence).toBe(plan.sequence + 1);
    expect(moved(plan.rows[0]!, next.rows[0]!)).toBeCloseTo(0.02, 8);
  });

  it('states the utilisation anew when the work of a request is another, though no weight changes', () => {
    const rows = [{ weights: { e0: 0.5, e1: 0.5 } }];
    const plan = evolve(null, rows, [1, 1]);
    const input = evolveInput(rows, [1, 1], { previous: plan });
    const work = { ...profile.work, secondsPerRequest: 0.6 * profile.work.secondsPerRequest };
    const engines = input.solution.engines.map((engine) => ({ ...engine, rho: 0.6 * engine.rho }));
    const faster = {
      ...input,
      solution: { ...input.solution, engines },
      profiles: new Map([[profile.id, { ...profile, work }]]),
    };
    const next = evolvePlan(faster);
    expect(check(faster, next)).toEqual([]);
    expect(next.rows[0]!.segments).toEqual(plan.rows[0]!.segments);
  });

  it('leaves the dead band where an engine would exceed its hard limit', () => {
    const rows = (e0: number): TestRow[] => [{ weights: { e0, e1: 1 - e0 }, demandRps: 200 }];
    const plan = evolve(null, rows(0.5), [1, 1]);
    const input = evolveInput([{ weights: { e0: 0.498, e1: 0.502 }, demandRps: 200.8 }], [1, 2], {
      previous: plan,
    });
    expect(weightsOf(evolvePlan(input)).e0).toBeCloseTo(0.498, 8);
  });

  it('leaves the dead band for an engine that died, one that comes in, and an operator who says so', () => {
    const plan = evolve(null, [{ weights: { e0: 0.997, e1: 0.003 } }], [2, 1, 1]);
    expect(weightsOf(evolve(plan, [{ weights: { e0: 1 } }], [2, 0, 1]))).toEqual({ e0: 1 });
    expect(
      weightsOf(evolve(plan, [{ weights: { e0: 0.992, e1: 0.003, e2: 0.005 } }], [2, 1, 1])),
    ).toHaveProperty('e2');
    const input = evolveInput([{ weights: { e0: 0.999, e1: 0.001 } }], [2, 1, 1], { previous: plan });
    const bounds = [{ engineId: 'e1', min: 0.001, max: 0.001, binding: 'max' as const }];
    const solution = { ...input.solution, rows: [{ ...input.solution.rows[0]!, bounds }] };
    expect(weightsOf(evolvePlan({ ...input, solution })).e1).toBeCloseTo(0.001, 8);
  });

  it('finds the map that an engine left although the solver places it a little differently', () => {
    const five = { e0: 0.2000039, e1: 0.2000039, e2: 0.2000039, e3: 0.2000039, e4: 0.1999844 };
    const plan = evolve(null, [{ weights: five }], [1, 1, 1, 1, 1]);
    const away = evolve(plan, [{ weights: { e0: 0.25, e1: 0.25, e3: 0.25, e4: 0.25 } }], [1, 1, 0, 1, 1]);
    const back = evolve(away, [{ weights: { ...five, e2: 0.1999844, e4: 0.2000039 } }], [1, 1, 1, 1, 1]);
    expect(moved(plan.rows[0]!, away.rows[0]!)).toBeCloseTo(0.2, 8);
    expect(moved(plan.rows[0]!, back.rows[0]!)).toBe(0);
  });

  it('keeps every weight within a two-thousandth of the solution', () => {
    fc.assert(
      fc.property(randomRows, (rows) => {
        const plan = evolve(null, rows, [2, 2, 2, 2, 2]);
        rows.forEach(({ weights }, index) => {
          for (const [engineId, weight] of Object.entries(weightsOf(plan, index))) {
            expect(Math.abs(weight / weights[engineId]! - 1)).toBeLessThan(0.001);
          }
        });
      }),
    );
  });

  it('moves only what the weights demand when one row changes, and nothing in the other rows', () => {
    const plan = evolve(null, threeRows, [1, 1, 1]);
    const changed = threeRows.map((row, index) =>
      index === 2 ? { ...row, weights: { e0: 0.4, e1: 0.3, e2: 0.3 } } : row,
    );
    const next = evolve(plan, changed, [1, 1, 1]);
    expect(next.rows[0]).toEqual(plan.rows[0]);
    expect(next.rows[1]).toEqual(plan.rows[1]);
    expect(moved(plan.rows[2]!, next.rows[2]!)).toBeCloseTo(0.1, 8);
  });

  it('gives a row that nobody can serve no weights, and finds the same owners when they are back', () => {
    const rows = [{ weights: { e0: 0.3, e1: 0.7 } }];
    const plan = evolve(null, rows, [1, 1]);
    const empty = evolve(plan, [{ weights: {} }], [0, 0]);
    expect(empty.rows[0]).toMatchObject({ weights: [], segments: [] });
    expect(evolve(empty, [{ weights: {} }], [0, 0])).toBe(empty);
    expect(moved(plan.rows[0]!, evolve(empty, rows, [1, 1]).rows[0]!)).toBe(0);
  });

  it('hands over to backups in one move: what a guardrail diverts is where the next plan leads', () => {
    const weights = { e0: 0.4, e1: 0.3, e2: 0.2, e3: 0.1 };
    const plan = evolve(null, [{ weights }], [1, 1, 1, 1]);
    const without = { e1: 0.3 / 0.6, e2: 0.2 / 0.6, e3: 0.1 / 0.6 };
    const next = evolve(plan, [{ weights: without }], [0, 1, 1, 1]);
    const segments = plan.rows[0]!.segments;
    segments.forEach(({ start, ownerId, backupId }, index) => {
      const expected = ownerId === 'e0' ? backupId : ownerId;
      for (const part of partsOf(next.rows[0]!.segments, start, endOf(segments, index))) {
        // Weights are rounded to four digits, backups are not.
        if (part.end - part.start > HASH_SPACE / 5000) expect(part.segment.ownerId).toBe(expected);
      }
    });
    const back = evolve(next, [{ weights }], [1, 1, 1, 1]);
    expect(moved(plan.rows[0]!, back.rows[0]!)).toBe(0);
  });

  it('publishes shed fractions that refuse enough, keeps them in their dead band and drops them at once', () => {
    const shedding = (fraction: number): TestRow[] => [
      {
        weights: { e0: 1 },
        demandRps: fraction === 0 ? 99 : 100 / (1 - fraction),
        shed: [{ priority: 0, fraction }],
      },
    ];
    const shedOf = (plan: Plan) => plan.rows[0]!.shed;
    const plan = evolve(null, shedding(0.3012), [1]);
    expect(shedOf(plan)).toEqual([{ priority: 0, fraction: 0.305 }]);
    const less = evolve(plan, shedding(0.29), [1]);
    expect(shedOf(less)).toEqual([{ priority: 0, fraction: 0.305 }]);
    expect(shedOf(evolve(less, shedding(0.31), [1]))).toEqual([{ priority: 0, fraction: 0.31 }]);
    expect(shedOf(evolve(less, shedding(0.2), [1]))).toEqual([{ priority: 0, fraction: 0.2 }]);
    expect(shedOf(evolve(less, shedding(0), [1]))).toEqual([]);
  });

  it('states a demand that is off by more than a tenth in a new plan, which moves nothing', () => {
    const rows = (demandRps: number) => [{ weights: { e0: 0.5, e1: 0.5 }, demandRps }];
    const plan = evolve(null, rows(50), [1, 1]);
    expect(evolve(plan, rows(54), [1, 1])).toBe(plan);
    const next = evolve(plan, rows(60), [1, 1]);
    expect(next.id).not.toBe(plan.id);
    expect(moved(plan.rows[0]!, next.rows[0]!)).toBe(0);
  });

  it('is another plan where only the retry ratio or a backup is another, and moves nothing', () => {
    const rows = (demandRps: number, e0Backup = 'e1') => {
      const alone = (ownerId: string, engineId: string) => ({ ownerId, shares: [{ engineId, weight: 1 }] });
      const backups = [alone('e0', e0Backup), alone('e1', 'e0'), alone('e2', 'e0')];
      return [{ weights: { e0: 0.4, e1: 0.3, e2: 0.3 }, demandRps, backups }];
    };
    const plan = evolve(null, rows(255), [1, 1, 1]);
    const busier = evolve(plan, rows(261), [1, 1, 1]);
    expect([plan, busier].map((each) => each.rows[0]!.retryRatio)).toEqual([0.1, 0.08]);
    const guarded = evolve(busier, rows(261, 'e2'), [1, 1, 1]);
    expect(guarded.rows[0]!.segments[0]).toEqual({ start: 0, ownerId: 'e0', backupId: 'e2' });
    expect(moved(plan.rows[0]!, guarded.rows[0]!)).toBe(0);
  });

  it('gives backups to an engine that keeps its weight although the solution gives it none', () => {
    const plan = evolve(null, [{ weights: { e0: 0.7, e1: 0.296, e2: 0.004 } }], [1, 1, 1]);
    const next = evolve(plan, [{ weights: { e0: 0.704, e1: 0.296 } }], [1, 1, 1]);
    const backupsOf = ({ rows }: Plan) =>
      rows[0]!.segments.filter(({ ownerId }) => ownerId === 'e2').map(({ backupId }) => backupId);
    expect(weightsOf(next).e2).toBeCloseTo(0.004, 8);
    expect(backupsOf(next)).toEqual(backupsOf(plan));
    expect(backupsOf(next)).not.toContain(null);
  });

  it('lets all frontends start from the same order of engines', () => {
    fc.assert(
      fc.property(randomRows, (rows) => {
        for (const row of evolve(null, rows, [2, 2, 2, 2, 2]).rows) {
          const owners = row.segments.map(({ ownerId }) => ownerId);
          expect(owners).toEqual([...owners].sort());
        }
      }),
    );
  });
});
