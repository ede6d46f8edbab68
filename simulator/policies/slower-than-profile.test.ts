import { describe, expect, it, vi } from 'vitest';
import { turningPoints } from '../measures/steadiness.js';
import { type QueueingEngine, runQueueingFleet, type Sample } from './testing/queueing-fleet.js';

vi.setConfig({ testTimeout: 60_000 });

/** 50 requests/s of each replica. */
const profile = {
  work: { secondsPerRequest: 0.02 },
  ttft: { baseSeconds: 0.02, queueSeconds: 0.02 },
  tbot: { baseSeconds: 0 },
};
/** When the engine turns slow, and when its weight is to have settled. */
const SLOW = 30;
const SETTLED = SLOW + 30;

function fleetOf(requestsPerSecond: number, b: Pick<QueueingEngine, 'slots' | 'serviceSeconds'>) {
  return {
    requestsPerSecond,
    profile,
    engines: [
      { id: 'a', replicas: 2, rttSeconds: 0.02, slots: () => 1, serviceSeconds: () => 0.02 },
      { id: 'b', replicas: 1, rttSeconds: 0.05, ...b },
    ],
  };
}

/** Turning points of the weight of engine b. */
function turnsOf(samples: readonly Sample[]): number {
  return turningPoints(
    samples.map(({ weights }) => weights[1]!),
    0.02,
  ).turns;
}

describe('an engine far slower than its profile', () => {
  it.each([
    [0.1, 75],
    [0.4, 90],
    [0.6, 100],
  ])(
    'at %d of it gets less, with few turns and little in flight, and is back within two minutes of recovering',
    async (speed, requestsPerSecond) => {
      const recovered = SLOW + 100;
      const serviceSeconds = (second: number) => 0.02 / (second >= SLOW && second < recovered ? speed : 1);
      const samples = await runQueueingFleet(
        fleetOf(requestsPerSecond, { slots: () => 1, serviceSeconds }),
        recovered + 120,
      );
      const usual = samples.find(({ second }) => second === SLOW)!.weights[1]!;
      const slow = samples.filter(({ second }) => second >= SLOW && second < recovered);
      const settled = slow.filter(({ second }) => second >= SETTLED);
      expect(turnsOf(settled)).toBeLessThanOrEqual(1);
      // It gets what it can do, and takes a few seconds for what it has.
      const sent = settled.at(-1)!.weights[1]! * requestsPerSecond;
      expect(sent).toBeGreaterThan(0);
      expect(sent).toBeLessThan(speed * 50);
      expect(settled.at(-1)!.inFlight[1]).toBeLessThan(3 * speed * 50);
      const { outliers, capacities } = settled.at(-1)!.view;
      const states = [outliers, capacities].map((views) => views.find(({ engineId }) => engineId === 'b')!);
      expect(states.some(({ sinceMs, endsWhen }) => sinceMs !== null && endsWhen !== null)).toBe(true);
      expect(samples.at(-1)!.weights[1]).toBeGreaterThan(0.8 * usual);
    },
  );

  it('four times and for longer, beside two that are full without it, has its weight back within 40 s of recovering', async () => {
    const recovered = SLOW + 90;
    const engineOf = (id: string, serviceSeconds: (second: number) => number) => {
      return { id, replicas: 1, rttSeconds: 0.001, slots: () => 5, serviceSeconds, hasPage: true };
    };
    const samples = await runQueueingFleet(
      {
        // Its queue lasts for minutes, as the others overflow to it.
        seed: 6,
        requestsPerSecond: 60,
        // 25 requests/s of each replica.
        profile: {
          work: { secondsPerRequest: 0.04 },
          ttft: { baseSeconds: 0.2, queueSeconds: 0.01 },
          tbot: { baseSeconds: 0 },
        },
        engines: [
          engineOf('a', () => 0.2),
          engineOf('b', (second) => (second >= SLOW && second < recovered ? 0.8 : 0.2)),
          engineOf('c', () => 0.2),
        ],
      },
      recovered + 40,
    );
    const usual = samples.find(({ second }) => second === SLOW)!.weights[1]!;
    expect(samples.find(({ second }) => second === recovered)!.weights[1]).toBeLessThan(usual / 2);
    expect(samples.at(-1)!.weights[1]).toBeGreaterThan(0.8 * usual);
  });

  it('in how many requests it serves at a time settles by what it got done when it was full', async () => {
    const slots = (second: number) => (second >= SLOW ? 8 : 20);
    const fleet = fleetOf(75, { slots, serviceSeconds: () => 0.4 });
    const samples = await runQueueingFleet(
      {
        ...fleet,
        profile: { ...profile, ttft: { ...profile.ttft, baseSeconds: 0.4 } },
        engines: fleet.engines.map((engine) =>
          engine.id === 'b' ? engine : { ...engine, slots: () => 20, serviceSeconds: () => 0.4 },
        ),
      },
      SLOW + 100,
    );
    const settled = samples.filter(({ second }) => second >= SETTLED);
    expect(turnsOf(settled)).toBeLessThanOrEqual(1);
    const { capacities } = settled.at(-1)!.view;
    expect(capacities.find(({ engineId }) => engineId === 'b')).toMatchObject({ state: 'corrected' });
  });
});
