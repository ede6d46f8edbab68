import { describe, expect, it } from 'vitest';
import { noEngineUsage, noPoolUsage } from '../../../wire/usage-report.js';
import { RecentTraffic } from './recent-traffic.js';

const pool = { ...noPoolUsage(1n, 0), offered: 10, shed: 1, unavailable: 1 };
const engine = {
  ...noEngineUsage(1n, 2n),
  ...{ ended: 8, status2xx: 3, status4xx: 1, status5xx: 1, noResponse: 1, broken: 1, failures: 4 },
  ...{ firstTokenSecondsSum: 1, firstTokenCount: 4, wholeSecondsSum: 6, wholeCount: 3 },
};

/** One report a second, of two frontends that send to one engine, until `seconds`. */
function reported(seconds: number, startMs = 1_000_000): RecentTraffic {
  const traffic = new RecentTraffic();
  for (let second = 1; second <= seconds; second++) {
    const nowMs = startMs + 1_000 * second;
    for (const frontendId of ['west', 'east']) {
      traffic.addPool(frontendId, pool, nowMs - 1_000, nowMs);
      traffic.addEngine(frontendId, 'a', engine, nowMs - 1_000, nowMs);
    }
  }
  return traffic;
}

describe('recent traffic', () => {
  it('has rates, shares and means of what was reported, of each frontend and over all frontends of each engine', () => {
    const traffic = reported(3);
    expect(traffic.frontend('west', 1_003_000)).toEqual({
      ...{ offeredPerSecond: 10, refusedShare: 0.2, failedShare: 3 / 8 },
      ...{ firstTokenSeconds: 0.25, wholeSeconds: 2 },
    });
    expect(traffic.engine('a', 1_003_000)).toEqual({
      ...{ endedPerSecond: 16, failuresPerSecond: 8, answers: 30, rejectedShare: 0.2 },
      ...{ firstTokenSeconds: 0.25, wholeSeconds: 2 },
    });
  });

  it('is that of the last minute at the most, however long reports have come', () => {
    const traffic = reported(300);
    expect(traffic.engine('a', 1_300_000).endedPerSecond).toBeCloseTo(16, 0);
    expect(traffic.engine('a', 1_330_000).endedPerSecond).toBeGreaterThan(6);
    expect(traffic.engine('a', 1_330_000).endedPerSecond).toBeLessThan(10);
    expect(traffic.engine('a', 1_361_000)).toEqual({
      ...{ endedPerSecond: 0, failuresPerSecond: 0, answers: 0, rejectedShare: null },
      ...{ firstTokenSeconds: null, wholeSeconds: null },
    });
  });

  it('counts what comes again after a silence, and not the silence before it', () => {
    const traffic = reported(100);
    traffic.addEngine('west', 'a', engine, 1_999_000, 2_000_000);
    expect(traffic.engine('a', 2_000_000).endedPerSecond).toBe(8);
    expect(traffic.engine('a', 2_001_000).endedPerSecond).toBe(4);
  });

  it('is nothing of what was never reported', () => {
    const nothing = { firstTokenSeconds: null, wholeSeconds: null };
    expect(reported(3).engine('b', 1_003_000)).toEqual({
      ...{ endedPerSecond: 0, failuresPerSecond: 0, answers: 0, rejectedShare: null, ...nothing },
    });
    expect(new RecentTraffic().frontend('west', 1_003_000)).toEqual({
      ...{ offeredPerSecond: 0, refusedShare: null, failedShare: null, ...nothing },
    });
  });
});
