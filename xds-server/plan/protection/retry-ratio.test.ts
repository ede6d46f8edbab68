import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  pooledUtilization,
  RETRY_FULL_BELOW,
  RETRY_LEAST_ABOVE,
  RETRY_STEP,
  retryRatio,
} from './retry-ratio.js';

const defaults = { max: 0.2, min: 0 };
const utilization = fc.double({ min: 0, max: 1.5, noNaN: true });

describe('retryRatio', () => {
  it('is the highest below the first breakpoint and the lowest from the second on', () => {
    expect(retryRatio(0, 1, defaults, undefined)).toBe(0.2);
    expect(retryRatio(RETRY_FULL_BELOW, 1, defaults, undefined)).toBe(0.2);
    expect(retryRatio(0.85, 1, defaults, undefined)).toBe(0.1);
    expect(retryRatio(RETRY_LEAST_ABOVE, 1, defaults, 0.2)).toBe(0);
    expect(retryRatio(Number.POSITIVE_INFINITY, 1, defaults, 0.2)).toBe(0);
  });

  it('never lets retries push a pool past the second breakpoint', () => {
    fc.assert(
      fc.property(utilization, utilization, (rho, before) => {
        fc.pre(rho < RETRY_LEAST_ABOVE);
        const ratio = retryRatio(rho, 1, defaults, retryRatio(before, 1, defaults, undefined));
        expect(rho * (1 + ratio)).toBeLessThanOrEqual(RETRY_LEAST_ABOVE + 1e-9);
      }),
    );
  });

  it('falls with utilisation and stays within the policy', () => {
    const policy = fc
      .tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 0, max: 1, noNaN: true }))
      .map(([a, b]) => ({ max: Math.max(a, b), min: Math.min(a, b) }));
    fc.assert(
      fc.property(utilization, utilization, policy, (a, b, limits) => {
        const low = retryRatio(Math.min(a, b), 1, limits, undefined);
        const high = retryRatio(Math.max(a, b), 1, limits, undefined);
        expect(high).toBeLessThanOrEqual(low);
        expect(high).toBeGreaterThanOrEqual(limits.min);
        expect(low).toBeLessThanOrEqual(limits.max);
      }),
    );
  });

  it('rises again when the load has gone', () => {
    expect(retryRatio(0.5, 1, defaults, 0)).toBe(0.2);
    expect(retryRatio(0.85, 1, defaults, 0.06)).toBe(0.1);
  });

  it('changes by hysteresis: noise of less than a step changes a ratio at most once', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.76, max: 0.93, noNaN: true }),
        fc.array(fc.double({ min: -1, max: 1, noNaN: true }), { minLength: 20, maxLength: 20 }),
        (rho, noise) => {
          const ratios: number[] = [];
          for (const shift of noise) {
            ratios.push(retryRatio(rho + shift * 0.45 * RETRY_STEP, 1, defaults, ratios.at(-1)));
          }
          const changes = ratios.filter((ratio, index) => index > 0 && ratio !== ratios[index - 1]);
          expect(changes.length).toBeLessThanOrEqual(1);
        },
      ),
    );
  });
});

describe('pooledUtilization', () => {
  it('weighs engines by capacity and is infinite without any', () => {
    const engine = (effectiveCapacity: number, rho: number) => ({
      engineId: 'e',
      effectiveCapacity,
      rho,
      congestionPriceSeconds: 0,
      scarcityPriceSeconds: 0,
    });
    expect(pooledUtilization([engine(3, 0.4), engine(1, 0.8), engine(0, 0)])).toBeCloseTo(0.5, 12);
    expect(pooledUtilization([engine(0, 0)])).toBe(Number.POSITIVE_INFINITY);
  });
});
