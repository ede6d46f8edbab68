import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { tbotDelaySeconds, ttftDelaySeconds } from '../../profiles/curves.js';
import { coarsePoints, SEGMENT_ERROR, segmentsAt } from '../program/tangents.js';
import { simpleProfile } from '../testing/world.js';
import { Congestion, EVEN_LOAD_SECONDS, SOFT_LIMIT_SECONDS } from './congestion.js';

const mix = { requestsPerWorkSecond: 100, outputTokensPerWorkSecond: 20_000 };
const limits = { target: 0.9, max: 1 };
const congestion = new Congestion(simpleProfile(100), mix, 1, limits);
const rhos = fc.double({ min: 0, max: 1, noNaN: true });

const anyCongestion = fc
  .record({
    queueSeconds: fc.double({ min: 0, max: 0.1, noNaN: true }),
    kappa: fc.double({ min: 0, max: 0.95, noNaN: true }),
    maxFittedRho: fc.double({ min: 0.3, max: 1, noNaN: true }),
    max: fc.double({ min: 0.5, max: 1, noNaN: true }),
    target: fc.double({ min: 0.4, max: 1, noNaN: true }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
  })
  .map(({ queueSeconds, kappa, maxFittedRho, max, target, factor }) => {
    const { ttft } = simpleProfile(100);
    const tbot = { baseSeconds: 0.01, kappa };
    const profile = simpleProfile(100, { ttft: { ...ttft, queueSeconds }, tbot, maxFittedRho });
    return new Congestion(profile, mix, factor, { target, max });
  });

describe('cost and price', () => {
  test('below the target the cost is the delay of the mix, and a hair that keeps equal engines even', () => {
    const profile = simpleProfile(100);
    const rho = 0.7;
    const delay = 100 * ttftDelaySeconds(profile, rho) + 19_900 * tbotDelaySeconds(profile, rho);
    expect(congestion.cost(rho)).toBeCloseTo(rho * delay + 0.5 * 100 * EVEN_LOAD_SECONDS * rho * rho, 12);
  });

  test('at the hard limit the steep part has reached its price', () => {
    expect(congestion.steepPrice(0.9)).toBe(0);
    expect(congestion.steepPrice(1)).toBeCloseTo(100 * SOFT_LIMIT_SECONDS, 9);
  });

  test('the price is the derivative of the cost and rises without jumps', () => {
    fc.assert(
      fc.property(anyCongestion, rhos, (any, share) => {
        const rho = 1e-4 + share * (any.max - 2e-4);
        const step = 1e-6;
        const slope = (any.cost(rho + step) - any.cost(rho - step)) / (2 * step);
        expect(any.price(rho)).toBeCloseTo(slope, 1);
        expect(any.price(rho + step)).toBeGreaterThan(any.price(rho));
      }),
    );
  });

  test('the utilisation at a worth is the inverse of the worth, into overload', () => {
    fc.assert(
      fc.property(anyCongestion, rhos, rhos, (any, share, guess) => {
        const rho = share * 1.2 * any.max;
        expect(any.rhoAt(any.worth(rho), guess)).toBeCloseTo(rho, 9);
      }),
    );
  });

  test('the dual value is the lowest of cost minus price times utilisation', () => {
    fc.assert(
      fc.property(anyCongestion, fc.double({ min: 0, max: 5000, noNaN: true }), rhos, (any, price, share) => {
        const rho = share * any.max;
        expect(any.dual(price)).toBeLessThanOrEqual(any.cost(rho) - price * rho + 1e-6);
      }),
    );
  });
});

describe('tangents', () => {
  test('stay below the curve, and within the stated error of it', () => {
    fc.assert(
      fc.property(anyCongestion, rhos, (any, share) => {
        const { widths, prices } = segmentsAt(any, coarsePoints(any));
        const rho = share * any.max;
        let below = 0;
        let rest = rho;
        widths.forEach((width, at) => {
          below += prices[at]! * Math.min(width, rest);
          rest = Math.max(0, rest - width);
        });
        const cost = any.cost(rho);
        expect(below).toBeLessThanOrEqual(cost * (1 + 1e-9) + 1e-9);
        expect(cost - below).toBeLessThanOrEqual(SEGMENT_ERROR * cost + 2e-3 * any.cost(any.max) + 1e-9);
      }),
    );
  });

  test('cover the whole range with rising prices', () => {
    fc.assert(
      fc.property(anyCongestion, (any) => {
        const { widths, prices } = segmentsAt(any, coarsePoints(any));
        expect(widths.reduce((sum, width) => sum + width, 0)).toBeCloseTo(any.max, 12);
        expect(prices).toEqual([...prices].sort((a, b) => a - b));
      }),
    );
  });
});
