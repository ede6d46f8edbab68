import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Profile } from '../profiles/profile.js';
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
  for (let time = 0; time < times; time++) work.accept(reading, profile, mix);
  return work.health;
}

describe('work from outside', () => {
  it('lowers health by the utilisation it causes, in proportion to our requests', () => {
    expect(see(new OutsideWork(), { requests: 20, ours: 10, ourRho: 0.3, replicas: 2 })).toBeCloseTo(0.7);
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

  it('small changes do not move health, its end does', () => {
    const work = new OutsideWork();
    see(work, { requests: 20, ours: 10, ourRho: 0.3, replicas: 2 });
    expect(see(work, { requests: 22, ours: 10, ourRho: 0.3, replicas: 2 })).toBeCloseTo(0.7);
    expect(see(work, { requests: 10, ours: 10, ourRho: 0.3, replicas: 2 })).toBe(1);
  });

  it('a profile without latencies and no requests of ours say nothing: health stays', () => {
    const bare = { ...profile, ttft: { ...profile.ttft, baseSeconds: 0 } };
    const work = new OutsideWork();
    for (let time = 0; time < 8; time++)
      work.accept({ requests: 50, ours: 0, ourRho: 0, replicas: 1 }, bare, mix);
    expect(work.health).toBe(1);
    expect(work.view).toBeUndefined();
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
        work.accept(each, profile, mix);
        expect(work.health).toBeGreaterThanOrEqual(0.1);
        expect(work.health).toBeLessThanOrEqual(1);
      }
    }),
  );
});
