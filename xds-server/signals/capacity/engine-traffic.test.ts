import { describe, expect, it } from 'vitest';
import { noTraffic } from '../testing/traffic.js';
import { EngineTraffic } from './engine-traffic.js';

const START_MS = 1_600_000_000_000;

/** Adds the same every half second for a time. */
function run(traffic: EngineTraffic, requests: number, fromSecond: number, toSecond: number): void {
  for (let half = 2 * fromSecond; half < 2 * toSecond; half++) {
    const sent = { requests: requests / 2, workSeconds: requests / 20 };
    traffic.add({ ...noTraffic, ...sent }, START_MS + half * 500);
  }
}

/** Adds so many requests that came evenly between two seconds. */
function addLate(traffic: EngineTraffic, requests: number, fromSecond: number, toSecond: number): void {
  traffic.add({ ...noTraffic, requests }, START_MS + toSecond * 1_000, START_MS + fromSecond * 1_000);
}

describe('the traffic of an engine', () => {
  it('is the mean of the last ten seconds, or since the first report', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 4);
    expect(traffic.rates(START_MS + 4_000)).toMatchObject({ requests: 20, workSeconds: 2 });
    run(traffic, 20, 4, 30);
    run(traffic, 40, 30, 35);
    expect(traffic.rates(START_MS + 35_000).requests).toBe(30);
  });

  it('tells everything that it was given, each in its own place', () => {
    const traffic = new EngineTraffic();
    const names = Object.keys(noTraffic) as (keyof typeof noTraffic)[];
    const given = { ...noTraffic, ...Object.fromEntries(names.map((name, at) => [name, 2 ** at])) };
    traffic.add(given, START_MS);
    expect(traffic.rates(START_MS)).toEqual(given);
    traffic.add(given, START_MS + 4_000, START_MS);
    const half = Object.fromEntries(names.map((name, at) => [name, 2 ** at / 2]));
    expect(traffic.rates(START_MS + 4_000)).toEqual(half);
  });

  it('has grown while its last ten seconds are half as much again as its last minute, and not by beginning', () => {
    const traffic = new EngineTraffic();
    const hasGrownAt = (second: number) => traffic.hasGrown(START_MS + second * 1_000);
    run(traffic, 2, 0, 60);
    for (const second of [1, 5, 30, 60]) expect(hasGrownAt(second)).toBe(false);
    run(traffic, 20, 60, 61);
    expect(hasGrownAt(61)).toBe(true);
    run(traffic, 20, 61, 90);
    expect(hasGrownAt(90)).toBe(true);
    run(traffic, 20, 90, 120);
    expect(hasGrownAt(110)).toBe(false);
    run(traffic, 25, 120, 140);
    expect(hasGrownAt(140)).toBe(false);
  });

  it('is told over as many seconds as asked for, a minute at most', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 100);
    run(traffic, 40, 100, 103);
    expect(traffic.rates(START_MS + 103_000, 3).requests).toBe(40);
    expect(traffic.rates(START_MS + 103_000, 1_000).requests).toBeCloseTo(21);
  });

  it('of a report that comes late belongs to the whole time that it tells of, as far as anything is kept', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 30);
    addLate(traffic, 160, 30, 38);
    for (const seconds of [1, 5, 10, 30]) {
      expect(traffic.rates(START_MS + 38_000, seconds).requests).toBeCloseTo(20);
    }
    addLate(traffic, 4_000, 38, 238);
    for (const seconds of [1, 5, 60]) {
      expect(traffic.rates(START_MS + 238_000, seconds).requests).toBeCloseTo(20);
    }
  });

  it('ends with the reports', () => {
    const traffic = new EngineTraffic();
    run(traffic, 20, 0, 30);
    expect(traffic.rates(START_MS + 35_000).requests).toBe(10);
    expect(traffic.rates(START_MS + 90_000).requests).toBe(0);
    expect(new EngineTraffic().rates(START_MS).requests).toBe(0);
  });
});
