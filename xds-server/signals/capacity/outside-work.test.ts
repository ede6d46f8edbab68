import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import type { Profile } from '../../profiles/profile.js';
import { type LoadReading, OutsideWork } from './outside-work.js';

/** 20 requests/s at most; one takes 1 s at any load, so that 20 of them fill a replica. */
const profile: Profile = {
  id: 'p',
  work: { secondsPerRequest: 0.05, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: 1, secondsPerUncachedPromptToken: 0, queueSeconds: 0 },
  tbot: { baseSeconds: 0, kappa: 0 },
  maxFittedRho: 0.98,
};
const mix = { uncachedPromptTokens: 100, outputTokens: 10 };

function see(work: OutsideWork, reading: LoadReading, times = 8): number {
  for (let time = 0; time < times; time++) work.accept(reading, { profile, mix }, 0);
  return work.health;
}

describe('work from outside', () => {
  it('lowers health by the utilisation it causes, in proportion to our requests', () => {
    expect(see(new OutsideWork(), { requests: 20, ours: 10, ourRho: 0.3, replicas: 2 })).toBeCloseTo(0.7);
  });

  it('that only a page has shown which turned out to stand still is forgotten, what was known before is not', () => {
    const work = new OutsideWork();
    const look = (requests: number, fromMs: number, toMs: number) => {
      for (let nowMs = fromMs; nowMs < toMs; nowMs += 2_000)
        work.accept({ requests, ours: 10, ourRho: 0.3, replicas: 1 }, { profile, mix }, nowMs);
      return work.health;
    };
    expect(look(20, 0, 60_000)).toBeCloseTo(0.7);
    expect(look(60, 60_000, 120_000)).toBeCloseTo(0.1);
    work.distrust(59_000);
    expect(work.health).toBeCloseTo(0.7);
    expect(look(60, 120_000, 134_000)).toBeCloseTo(0.7);
    work.distrust(133_000);
    expect(work.health).toBeCloseTo(0.7);
  });

  it('is judged by the profile where we have no requests to compare with', () => {
    const work = new OutsideWork();
    expect(see(work, { requests: 20, ours: 0, ourRho: 0, replicas: 2 })).toBeCloseTo(0.5);
    expect(work.view).toEqual({ requests: 20, rho: expect.closeTo(0.5, 5) });
  });

  it('is nothing when all requests are ours, give or take what reports and pages miss', () => {
    const work = new OutsideWork();
    for (const requests of [40, 45, 35, 44, 38, 46, 30, 45])
      see(work, { requests, ours: 40, ourRho: 0.8, replicas: 2 }, 1);
    expect(work.health).toBe(1);
  });

  it('must last: single looks change nothing', () => {
    const work = new OutsideWork();
    see(work, { requests: 10, ours: 10, ourRho: 0.3, replicas: 2 });
    expect(see(work, { requests: 40, ours: 10, ourRho: 0.3, replicas: 2 }, 3)).toBe(1);
  });

  it('is not what a page shows that is a second ahead while our requests pile up', () => {
    const work = new OutsideWork();
    for (let look = 0; look < 32; look++) {
      const ours = 40 + 160 * look;
      expect(see(work, { requests: ours + 80, ours, ourRho: 0.9, replicas: 2 }, 1)).toBe(1);
    }
  });

  it('small changes do not move health, its end does', () => {
    const work = new OutsideWork();
    see(work, { requests: 20, ours: 10, ourRho: 0.3, replicas: 2 });
    expect(see(work, { requests: 22, ours: 10, ourRho: 0.3, replicas: 2 })).toBeCloseTo(0.7);
    expect(see(work, { requests: 10, ours: 10, ourRho: 0.3, replicas: 2 })).toBe(1);
  });

  describe('of an engine whose profile knows only a rate, while it has no requests of ours', () => {
    const bare = { ...profile, ttft: { ...profile.ttft, baseSeconds: 0 } };
    const known = (maxInFlight: number | undefined, requests: number, replicas = 1) => {
      const work = new OutsideWork();
      for (let time = 0; time < 8; time++)
        work.accept({ requests, ours: 0, ourRho: 0, replicas }, { profile: bare, mix, maxInFlight }, 0);
      return { health: work.health, view: work.view };
    };

    it('is not known: health stays', () => {
      expect(known(undefined, 50)).toEqual({ health: 1, view: undefined });
    });

    it.each([
      { requests: 12, replicas: 1, rho: 1 },
      { requests: 10, replicas: 1, rho: 1 },
      { requests: 8, replicas: 2, rho: 0.4 },
      { requests: 30, replicas: 4, rho: 0.75 },
    ])(
      'is judged by the most that it may have, where that is configured: $requests at $replicas',
      (given) => {
        const { health, view } = known(10, given.requests, given.replicas);
        expect(view).toEqual({ requests: given.requests, rho: expect.closeTo(given.rho, 5) });
        expect(health).toBeCloseTo(Math.max(0.1, 1 - given.rho));
      },
    );
  });
});

it('health is always between 0.1 and 1', () => {
  const reading = fc.record({
    requests: fc.nat(1_000),
    ours: fc.nat(1_000),
    ourRho: fc.double({ min: 0, max: 50, noNaN: true }),
    replicas: fc.nat(4),
  });
  fc.assert(
    fc.property(fc.array(reading, { minLength: 8, maxLength: 30 }), (readings) => {
      const work = new OutsideWork();
      for (const each of readings) {
        work.accept(each, { profile, mix }, 0);
        expect(work.health).toBeGreaterThanOrEqual(0.1);
        expect(work.health).toBeLessThanOrEqual(1);
      }
    }),
  );
});

const LOOK_SECONDS = 2;
const BINS_PER_SECOND = 20;

interface Chance {
  readonly rps: number;
  readonly staySeconds: number;
  /** Half of the time passes at `rps`, the rest at so many times that. */
  readonly surge?: number;
}

/** How many requests, which come and stay by chance, an engine has at each time. */
function requestsByChance(
  { rps, staySeconds, surge = 1 }: Chance,
  seconds: number,
  random: Random,
): (at: number) => number {
  const counts = new Int32Array(seconds * BINS_PER_SECOND + 1);
  const add = (at: number, change: number) => {
    const bin = Math.max(0, Math.ceil(at * BINS_PER_SECOND));
    if (bin < counts.length) counts[bin]! += change;
  };
  for (let at = -5 * staySeconds; at < seconds; ) {
    at += random.exponential(1 / (at < seconds / 2 ? rps : surge * rps));
    add(at, 1);
    add(at + random.exponential(staySeconds), -1);
  }
  for (let bin = 1; bin < counts.length; bin++) counts[bin]! += counts[bin - 1]!;
  return (at) => counts[Math.floor(Math.max(0, at) * BINS_PER_SECOND)]!;
}

/** Health after each look at a page up to 2 s old and reports up to 1 s old. */
function healthsByChance(ours: Chance, seconds: number, seed: number, outside?: Chance): number[] {
  const random = new Random(seed, 'outside work');
  const oursAt = requestsByChance(ours, seconds, random);
  const outsideAt = outside && requestsByChance(outside, seconds, random);
  const work = new OutsideWork();
  return Array.from({ length: seconds / LOOK_SECONDS - 1 }, (_, look) => {
    const now = (look + 1) * LOOK_SECONDS;
    const pageAt = now - 2 * random.unit();
    const requests = oursAt(pageAt) + (outsideAt?.(pageAt) ?? 0);
    return see(work, { requests, ours: oursAt(now - random.unit()), ourRho: 0.6, replicas: 4 }, 1);
  });
}

it('pages and reports of different moments are no work from outside, however many requests come, stay, and come to more', () => {
  const chance = fc.record({
    rps: fc.integer({ min: 1, max: 200 }),
    staySeconds: fc.double({ min: 0.2, max: 10, noNaN: true }),
    surge: fc.double({ min: 0.3, max: 3, noNaN: true }),
  });
  fc.assert(
    fc.property(chance, fc.nat(), (ours, seed) => {
      expect(healthsByChance(ours, 400, seed).filter((health) => health < 1)).toEqual([]);
    }),
    {
      numRuns: 40,
      // Pages show more than reports seven times in a row, by chance alone.
      examples: [[{ rps: 112, staySeconds: 0.2, surge: 0.35823239965894477 }, 2020035428]],
    },
  );
});

it.each([
  { requests: 50, withinLooks: 32 },
  { requests: 150, withinLooks: 12 },
  { requests: 600, withinLooks: 8 },
])(
  'a third of $requests requests of ours from outside are found within $withinLooks looks, and stay found',
  ({ requests, withinLooks }) => {
    for (let seed = 1; seed <= 20; seed++) {
      const healths = healthsByChance({ rps: requests, staySeconds: 1 }, 400, seed, {
        rps: requests / 3,
        staySeconds: 1,
      });
      for (const health of healths.slice(withinLooks)) expect(Math.abs(health - 0.8)).toBeLessThan(0.11);
    }
  },
);
