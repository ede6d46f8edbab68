import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { noTraffic } from '../testing/traffic.js';
import { EngineTraffic } from './engine-traffic.js';
import { RequestsHeld } from './requests-held.js';
import { type Stay, slownessLimit, stayOf, surelyDone } from './throughput.js';

const START_MS = 1_600_000_000_000;
const mix = { uncachedPromptTokens: 0, outputTokens: 1 };
const SLOTS = 5;
const SERVICE_SECONDS = 0.2;
const RATE = SLOTS / SERVICE_SECONDS;
const profile = {
  id: 'p',
  work: { secondsPerRequest: 1 / RATE, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: SERVICE_SECONDS, secondsPerUncachedPromptToken: 0, queueSeconds: 0.01 },
  tbot: { baseSeconds: 0, kappa: 0 },
  maxFittedRho: 0.95,
};

/** An engine that serves a few at a time, in a queue; the worst that was said of it in the last half of the time. */
function worst(rps: (second: number) => number, slowness: (second: number) => number, seconds = 60): number {
  const random = new Random(7, 'arrivals');
  const traffic = new EngineTraffic();
  const held = new RequestsHeld();
  const running: number[] = [];
  let waiting = 0;
  let most = 0;
  for (let step = 0; step < seconds * 20; step++) {
    const second = step / 20;
    const nowMs = START_MS + second * 1_000;
    const arrived = poisson(rps(second) / 20, random);
    waiting += arrived;
    const before = running.length;
    const left = running.filter((endsAt) => endsAt > second);
    running.splice(0, running.length, ...left);
    while (running.length < SLOTS && waiting > 0) {
      running.push(second + SERVICE_SECONDS * slowness(second));
      waiting--;
    }
    const ended = before - left.length;
    const sent = { requests: arrived, workSeconds: arrived / RATE };
    traffic.add({ ...noTraffic, ...sent, ended, endedWorkSeconds: ended / RATE }, nowMs);
    if (step % 10 > 0) continue;
    held.add(running.length + waiting, nowMs);
    const stay: Stay | undefined = stayOf(held, traffic, 1, profile, mix, nowMs);
    if (stay !== undefined && second > seconds / 2) {
      most = Math.max(most, stay.observedSeconds / stay.expectedSeconds);
    }
  }
  return most;
}

function poisson(mean: number, random: Random): number {
  let count = 0;
  for (let at = random.exponential(1); at < mean; at += random.exponential(1)) count++;
  return count;
}

describe('what an engine gets done', () => {
  it.each([0.2, 0.6, 0.9, 0.98])(
    'is what it should while it is as fast as ever, at a utilisation of %d',
    (rho) => {
      expect(
        worst(
          () => rho * RATE,
          () => 1,
        ),
      ).toBeLessThan(1.6);
    },
  );

  it('is what it should in a burst, and when there is more to do than can be done', () => {
    expect(
      worst(
        (second) => (second > 35 && second < 40 ? 3 * RATE : 0.5 * RATE),
        () => 1,
      ),
    ).toBeLessThan(1.6);
    expect(
      worst(
        () => 1.5 * RATE,
        () => 1,
      ),
    ).toBeLessThan(1.6);
  });

  it.each([0.2, 0.8])(
    'shows an engine that is ten times slower within 8 s, at a utilisation of %d',
    (rho) => {
      expect(
        worst(
          () => rho * RATE,
          (second) => (second > 24 ? 10 : 1),
          32,
        ),
      ).toBeGreaterThan(4);
    },
  );

  it('tells nothing where answers take minutes', () => {
    const long = { ...profile, ttft: { ...profile.ttft, baseSeconds: 60 } };
    const held = new RequestsHeld();
    for (let second = 0; second < 60; second++) held.add(10, START_MS + second * 1_000);
    expect(stayOf(held, new EngineTraffic(), 1, long, mix, START_MS + 60_000)).toBeUndefined();
  });
});

describe('what an engine surely gets done', () => {
  const answered = (count: number) => ({
    ...noTraffic,
    ended: count,
    endedWorkSeconds: count / RATE,
    answered: count,
    answeredWorkSeconds: count / RATE,
  });

  it('is less than what was counted, the more so the fewer answers there were', () => {
    expect(surelyDone(0.8, 0)).toBe(0);
    expect(surelyDone(0.8, 4)).toBe(0);
    expect(surelyDone(0.8, 100)).toBeCloseTo(0.64);
    expect(surelyDone(0.8, 1e9)).toBeCloseTo(0.8);
  });

  it('limits how slow it can be, by what its profile gives it', () => {
    const traffic = new EngineTraffic();
    for (let second = 0; second < 20; second++) traffic.add(answered(20), START_MS + second * 1_000);
    const nowMs = START_MS + 20_000;
    const surely = 0.8 * (1 - 2 / Math.sqrt(100));
    expect(slownessLimit(traffic, 1, profile, mix, nowMs)).toEqual({
      slowness: expect.closeTo(1 / surely),
      sinceMs: nowMs - 6_000,
    });
    expect(slownessLimit(traffic, 2, profile, mix, nowMs)!.slowness).toBeCloseTo(2 / surely);
    expect(slownessLimit(traffic, 1, profile, mix, nowMs + 6_000)).toBeUndefined();
    expect(slownessLimit(traffic, 0, profile, mix, nowMs)).toBeUndefined();
  });
});
