import { describe, expect, it } from 'vitest';
import { EngineTraffic } from './engine-traffic.js';

const START_MS = 1_600_000_000_000;

/** Adds the same every half second for a time. */
function run(traffic: EngineTraffic, requests: number, fromSecond: number, toSecond: number): void {
  for (let half = 2 * fromSecond; half < 2 * toSecond; half++) {
    traffic.add(requests / 2, requests / 20, START_MS + half * 500);
  }
}

describe('the traffic of an engine', () => {
  it('is the mean of the last ten seconds, or since the first report', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 4);
    expect(traffic.rates(START_MS + 4_000)).toEqual({ requestsPerSecond: 20, workPerSecond: 2 });
    run(traffic, 20, 4, 30);
    run(traffic, 40, 30, 35);
    expect(traffic.rates(START_MS + 35_000).requestsPerSecond).toBe(30);
  });

  it('ends with the reports', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 30);
    expect(traffic.rates(START_MS + 35_000).requestsPerSecond).toBe(10);
    expect(traffic.rates(START_MS + 90_000).requestsPerSecond).toBe(0);
    expect(new EngineTraffic().rates(START_MS).requestsPerSecond).toBe(0);
  });
});
