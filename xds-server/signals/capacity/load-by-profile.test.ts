import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { knowsLatency, staySeconds } from '../../profiles/curves.js';
import { queueSeconds, rhoOf, slownessOf } from './load-by-profile.js';

const mix = { uncachedPromptTokens: 100, outputTokens: 40 };
const profile = {
  id: 'p',
  work: { secondsPerRequest: 0, secondsPerUncachedPromptToken: 4e-5, secondsPerOutputToken: 1.6e-4 },
  ttft: { baseSeconds: 0.013, secondsPerUncachedPromptToken: 2e-5, queueSeconds: 0.003 },
  tbot: { baseSeconds: 0.01, kappa: 0.57 },
  maxFittedRho: 0.96,
};
const work = 100 * 4e-5 + 40 * 1.6e-4;

describe('utilisation by the number of requests', () => {
  it("obeys Little's law: requests are arrivals times the time that each stays", () => {
    fc.assert(
      fc.property(fc.double({ min: 0.01, max: 0.97, noNaN: true }), (rho) => {
        const requests = (rho / work) * staySeconds(profile, rho, mix);
        expect(rhoOf(requests, profile, mix)).toBeCloseTo(rho, 6);
      }),
    );
  });

  it('is none without requests, and ends where all work is being done', () => {
    expect(rhoOf(0, profile, mix)).toBeCloseTo(0);
    expect(rhoOf(1e6, profile, mix)).toBeCloseTo(0.98);
  });

  it('is unknown by a profile that knows only a rate', () => {
    const rate = {
      ...profile,
      ttft: { baseSeconds: 0, secondsPerUncachedPromptToken: 0, queueSeconds: 0.01 },
      tbot: { baseSeconds: 0, kappa: 0 },
    };
    expect(knowsLatency(rate)).toBe(false);
    expect(rhoOf(10, rate, mix)).toBeUndefined();
  });
});

it('requests wait only when there are more than can be served, as long as the work of the others takes', () => {
  expect(queueSeconds(10, profile, mix)).toBe(0);
  expect(queueSeconds(1_000, profile, mix)).toBeCloseTo(1_000 * work - staySeconds(profile, 0.98, mix));
});

describe('how many times slower an engine is', () => {
  const secondsAt = (rho: number) => staySeconds(profile, rho, mix);

  it('is what is left when its load has explained its part', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1, max: 20, noNaN: true }),
        fc.double({ min: 0, max: 0.95, noNaN: true }),
        (slowness, rho) => {
          const observed = slowness * secondsAt(rho);
          expect(slownessOf(observed, rho / slowness, secondsAt) / slowness).toBeCloseTo(1, 2);
        },
      ),
    );
  });

  it('is one for whoever is faster than its profile', () => {
    expect(slownessOf(secondsAt(0.5) / 2, 0.5, secondsAt)).toBe(1);
  });
});
