import { afterAll, describe, expect, it } from 'vitest';
import { Optimizer } from '../optimizer/index.js';
import { randomNumbers } from '../optimizer/testing/random.js';
import type { Plan } from './plan.js';
import { pieces, planFor, type TestFleet } from './testing/planned-fleet.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

const engines = { a: 100, b: 100, c: 80 };
const demand = { west: 90, middle: 120, east: 40 };

/** Round trips in milliseconds. */
const networks: Readonly<Record<string, TestFleet['rttMs']>> = {
  'three regions side by side': {
    west: { a: 2, b: 20, c: 40 },
    middle: { a: 20, b: 2, c: 20 },
    east: { a: 40, b: 20, c: 2 },
  },
  'the three regions of the demo': {
    west: { a: 4, b: 32, c: 90 },
    middle: { a: 30, b: 4, c: 60 },
    east: { a: 88, b: 62, c: 4 },
  },
  'a region about as far from both others': {
    west: { a: 2, b: 60, c: 65 },
    middle: { a: 50, b: 2, c: 30 },
    east: { a: 90, b: 25, c: 2 },
  },
};

function fleetOf(rttMs: TestFleet['rttMs'], factor: number, noise: () => number = () => 0): TestFleet {
  const rates = Object.entries(demand).map(([id, rps]) => [id, rps * factor * (1 + noise())]);
  return { engines, rttMs, demand: Object.fromEntries(rates) };
}

async function planOf(fleet: TestFleet, previous: Plan | null): Promise<Plan> {
  const { plan, failure } = await planFor(optimizer, fleet, previous);
  expect(failure).toBeUndefined();
  return plan!;
}

/** Share of the requests that the lost engine had whose engine is not the backup recorded before. */
function movedTwice(before: Plan, after: Plan, lost: string): number {
  let had = 0;
  let twice = 0;
  before.rows.forEach((row, index) => {
    for (const piece of pieces(row, after.rows[index]!)) {
      if (piece.before.ownerId !== lost) continue;
      had += piece.share * row.demandRps;
      if (piece.after.ownerId !== piece.before.backupId) twice += piece.share * row.demandRps;
    }
  });
  expect(had).toBeGreaterThan(0);
  return twice / had;
}

describe.each(Object.entries(networks))('%s', (_, rttMs) => {
  it.each([0.2, 0.4, 0.5, 0.6, 0.7, 0.8])(
    'at %d of their demand, all that a lost engine had stays at its recorded backups',
    async (factor) => {
      const fleet = fleetOf(rttMs, factor);
      const before = await planOf(fleet, null);
      for (const lost of Object.keys(engines)) {
        const after = await planOf({ ...fleet, lost: [lost] }, before);
        expect(movedTwice(before, after, lost)).toBe(0);
      }
    },
  );

  it('at most 5 % of it moves again when demand has changed by up to 2 % meanwhile', async () => {
    const random = randomNumbers(1);
    for (const factor of [0.4, 0.6]) {
      const before = await planOf(fleetOf(rttMs, factor), null);
      for (const lost of Object.keys(engines)) {
        for (let trial = 0; trial < 4; trial++) {
          const changed = fleetOf(rttMs, factor, () => 0.02 * (2 * random() - 1));
          const after = await planOf({ ...changed, lost: [lost] }, before);
          expect(movedTwice(before, after, lost)).toBeLessThan(0.05);
        }
      }
    }
  });

  it('at most 3 % of it moves again after a row of small changes that the plan has not followed', async () => {
    const random = randomNumbers(2);
    let plan = await planOf(fleetOf(rttMs, 0.6), null);
    for (let step = 0; step < 6; step++) {
      const fleet = fleetOf(rttMs, 0.6, () => 0.05 * (2 * random() - 1));
      plan = await planOf(fleet, plan);
      for (const lost of Object.keys(engines)) {
        expect(movedTwice(plan, await planOf({ ...fleet, lost: [lost] }, plan), lost)).toBeLessThan(0.03);
      }
    }
  });
});

it('what would drive an engine more than half above its limit goes elsewhere, and may move again', async () => {
  const rttMs = networks['three regions side by side']!;
  const fleet = fleetOf(rttMs, 1);
  const before = await planOf(fleet, null);
  const load = { a: 0, b: 0, c: 0 };
  for (const row of before.rows) {
    for (const { share, before: segment } of pieces(row, row)) {
      const engine = segment.ownerId === 'a' ? segment.backupId! : segment.ownerId;
      load[engine as keyof typeof load] += share * row.demandRps;
    }
  }
  expect(load.a).toBe(0);
  expect(load.b / engines.b).toBeCloseTo(1.5, 1);
  expect(load.c / engines.c).toBeGreaterThan(1);
  const after = await planOf({ ...fleet, lost: ['a'] }, before);
  expect(movedTwice(before, after, 'a')).toBeGreaterThan(0.1);
});
