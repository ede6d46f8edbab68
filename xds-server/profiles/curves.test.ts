import fc from 'fast-check';
import { expect, test } from 'vitest';
import { endOfCurves, tbotDelaySeconds, tbotSeconds, ttftDelaySeconds, ttftSeconds } from './curves.js';
import type { Profile } from './profile.js';

const profile: Profile = {
  id: 'p',
  work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: 0.03, secondsPerUncachedPromptToken: 2e-5, queueSeconds: 0.002 },
  tbot: { baseSeconds: 0.008, kappa: 0.4 },
  maxFittedRho: 0.9,
};

test('an idle engine has no delay, only its base and the prompt', () => {
  expect(ttftSeconds(profile, 0, 1000)).toBeCloseTo(0.05, 15);
  expect(tbotSeconds(profile, 0)).toBe(0.008);
});

test('within the fitted range the curves are the formulas of the profile', () => {
  expect(ttftSeconds(profile, 0.5, 0)).toBeCloseTo(0.03 + 0.002, 15);
  expect(tbotSeconds(profile, 0.5)).toBeCloseTo(0.008 / 0.8, 15);
});

test('rho times delay rises and is convex, also across the end of the range, for any profile', () => {
  const shape = fc.record({
    queueSeconds: fc.double({ min: 0, max: 1, noNaN: true }),
    kappa: fc.double({ min: 0, max: 0.99, noNaN: true }),
    maxFittedRho: fc.double({ min: 0.1, max: 1, noNaN: true }),
  });
  fc.assert(
    fc.property(shape, ({ queueSeconds, kappa, maxFittedRho }) => {
      const any = {
        ...profile,
        ttft: { ...profile.ttft, queueSeconds },
        tbot: { baseSeconds: 0.01, kappa },
        maxFittedRho,
      };
      for (const delay of [ttftDelaySeconds, tbotDelaySeconds]) {
        const load = (rho: number): number => (rho === 0 ? 0 : rho * delay(any, rho));
        let slope = 0;
        for (let rho = 0.01; rho <= 1.001; rho += 0.01) {
          const next = (load(rho) - load(rho - 0.01)) / 0.01;
          expect(next).toBeGreaterThanOrEqual(slope - 1e-9);
          slope = next;
        }
      }
    }),
  );
});

test('beyond the range rho times delay goes straight on', () => {
  const end = endOfCurves(profile);
  expect(end).toBe(0.9);
  const load = (rho: number): number => rho * ttftDelaySeconds(profile, rho);
  expect(load(1) - load(0.95)).toBeCloseTo(load(0.95) - load(0.9), 12);
  expect(load(0.9 + 1e-9)).toBeCloseTo(load(0.9), 9);
});
