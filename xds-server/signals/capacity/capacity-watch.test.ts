import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Pool } from '../../fleet/fleet.js';
import type { Profile, TokenMix } from '../../profiles/profile.js';
import { CapacityWatch, type MeasuredEngine, penaltyBeyond } from './capacity-watch.js';
import { EngineTraffic } from './engine-traffic.js';
import { fullRequests } from './load-by-profile.js';
import { RequestsHeld } from './requests-held.js';

const START_MS = 1_600_000_000_000;
const NEVER = Number.NEGATIVE_INFINITY;
const mix = { uncachedPromptTokens: 0, outputTokens: 1 };
const pools = [{ id: 'm', engineIds: ['a', 'b'] }] as unknown as readonly Pool[];

/** 100 requests/s at most; 10 ms each, and a queue. */
function profileOf(secondsPerRequest: number): Profile {
  return {
    id: 'p',
    work: { secondsPerRequest, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
    ttft: { baseSeconds: 0.1, secondsPerUncachedPromptToken: 0, queueSeconds: 0.01 },
    tbot: { baseSeconds: 0, kappa: 0 },
    maxFittedRho: 0.95,
  };
}

const profile = profileOf(0.01);
const FULL = fullRequests(profile, mix);

/** Two engines that are told what they hold and get done each second. */
class Fleet {
  readonly watch = new CapacityWatch();
  readonly #engines = ['a', 'b'].map((id) => ({
    id,
    held: new RequestsHeld(),
    traffic: new EngineTraffic(),
  }));
  #second = 0;

  get nowMs(): number {
    return START_MS + this.#second * 1_000;
  }

  run(
    seconds: number,
    loads: Readonly<Record<string, { requests: number; perSecond: number }>>,
    change: {
      profile?: Profile;
      mix?: TokenMix;
      replicas?: number;
      isFrozen?: boolean;
      unrestMs?: number;
      waiting?: number;
      outliers?: readonly string[];
    } = {},
  ): void {
    for (let step = 0; step < seconds; step++) {
      this.#second++;
      const judged = this.#engines.map(({ id, held, traffic }): MeasuredEngine => {
        const { requests, perSecond } = loads[id]!;
        const work = perSecond * (change.profile ?? profile).work.secondsPerRequest;
        traffic.add(
          {
            ...{ requests: perSecond, workSeconds: work, networkSeconds: 0 },
            ...{ ended: perSecond, endedWorkSeconds: work },
            ...{ answered: perSecond, answeredWorkSeconds: work, coldWorkSeconds: work, toldAnswers: 0 },
            ...{ timedAnswers: perSecond, staySeconds: requests },
          },
          this.nowMs,
        );
        held.add(requests, this.nowMs);
        if (change.waiting !== undefined) this.watch.acceptQueue(id, change.waiting, this.nowMs);
        return {
          ...{ id, held, traffic, isWhole: true },
          ...{ mix: change.mix ?? mix, profile: change.profile ?? profile },
          isOutlier: change.outliers?.includes(id) ?? false,
          ...{ readyReplicas: change.replicas ?? 1, isFrozen: change.isFrozen ?? false },
        };
      });
      this.watch.evaluate(judged, pools, change.unrestMs ?? NEVER, this.nowMs);
    }
  }

  share(engineId: string): number {
    return this.watch.capacity(engineId).share;
  }
}

const quiet = { requests: 5, perSecond: 40 };
const overrun = { requests: 3 * FULL, perSecond: 70 };

describe('measured capacities', () => {
  it('are what engines get done with more requests than their profile says of a full one, and nothing else', () => {
    const fleet = new Fleet();
    fleet.run(20, { a: quiet, b: { requests: 0.9 * FULL, perSecond: 70 } });
    expect([fleet.share('a'), fleet.share('b')]).toEqual([1, 1]);
    fleet.run(20, { a: quiet, b: overrun });
    expect([fleet.share('a'), fleet.share('b')]).toEqual([1, expect.closeTo(0.7)]);
  });

  it('are of no engine whose page says that nobody waits; where one does, as many as make it full are enough', () => {
    const idle = new Fleet();
    idle.run(60, { a: quiet, b: overrun }, { waiting: 0 });
    expect(idle.share('b')).toBe(1);
    const queued = new Fleet();
    queued.run(20, { a: quiet, b: { ...overrun, requests: 1.1 * FULL } }, { waiting: 1 });
    expect(queued.share('b')).toBeCloseTo(0.7);
  });

  it('are also what an engine slower than its like gets done with nearly as many requests', () => {
    const slow = { requests: 0.4 * FULL, perSecond: 30 };
    const alike = new Fleet();
    alike.run(60, { a: quiet, b: slow });
    expect(alike.share('b')).toBe(1);
    const outlier = new Fleet();
    outlier.run(20, { a: quiet, b: slow }, { outliers: ['b'] });
    expect(outlier.share('b')).toBeCloseTo(0.3);
    const idle = new Fleet();
    idle.run(60, { a: quiet, b: slow }, { outliers: ['b'], waiting: 0 });
    expect(idle.share('b')).toBe(1);
  });

  it('are not what a slow engine gets done that has little to do', () => {
    const fleet = new Fleet();
    fleet.run(60, { a: quiet, b: { requests: 6, perSecond: 10 } }, { outliers: ['b'] });
    expect(fleet.share('b')).toBe(1);
  });

  it('rise again however few requests an engine gets, when their answers are as quick as its profile says', () => {
    const fleet = new Fleet();
    fleet.run(20, { a: quiet, b: { requests: 3 * FULL, perSecond: 10 } });
    expect(fleet.share('b')).toBeCloseTo(0.1);
    fleet.run(60, { a: quiet, b: { requests: 2, perSecond: 2 } });
    expect(fleet.share('b')).toBeCloseTo(0.1);
    fleet.run(60, { a: quiet, b: { requests: 0.2, perSecond: 2 } });
    expect(fleet.share('b')).toBeGreaterThan(0.8);
  });

  it('wait for a minute after conversations were moved, also by a correction', () => {
    const fleet = new Fleet();
    fleet.run(50, { a: quiet, b: overrun }, { unrestMs: START_MS });
    expect(fleet.share('b')).toBe(1);
    fleet.run(30, { a: quiet, b: overrun }, { unrestMs: START_MS });
    expect(fleet.share('b')).toBeCloseTo(0.7);
    fleet.run(40, { a: overrun, b: overrun });
    expect(fleet.share('a')).toBe(1);
    fleet.run(40, { a: overrun, b: overrun });
    expect(fleet.share('a')).toBeCloseTo(0.7);
  });

  it('wait until replicas have been the same for long enough', () => {
    const fleet = new Fleet();
    fleet.run(9, { a: quiet, b: quiet });
    for (let time = 0; time < 8; time++)
      fleet.run(5, { a: quiet, b: { requests: 6 * FULL, perSecond: 140 } }, { replicas: 2 + (time % 2) });
    expect(fleet.share('b')).toBe(1);
  });

  it('stay as they are while an engine is frozen, and end with another profile', () => {
    const fleet = new Fleet();
    fleet.run(30, { a: quiet, b: overrun }, { isFrozen: true });
    expect(fleet.share('b')).toBe(1);
    fleet.run(30, { a: quiet, b: overrun });
    expect(fleet.share('b')).toBeCloseTo(0.7);
    fleet.run(1, { a: quiet, b: overrun }, { profile: profileOf(0.0143) });
    expect(fleet.share('b')).toBe(1);
  });

  it('are corrected by less when requests are found to be more work than was taken', () => {
    const fleet = new Fleet();
    const byTokens = { ...profile, work: { ...profile.work, secondsPerOutputToken: 0.001 } };
    fleet.run(30, { a: quiet, b: overrun }, { profile: byTokens });
    const before = fleet.share('b');
    expect(before).toBeCloseTo(0.7);
    const mix = { uncachedPromptTokens: 0, outputTokens: 3 };
    fleet.run(1, { a: quiet, b: overrun }, { profile: byTokens, mix });
    expect(fleet.share('b')).toBeCloseTo((before * 0.013) / 0.011);
    expect(fleet.share('a')).toBe(1);
  });

  const both = [
    { id: 'a', profile },
    { id: 'b', profile },
  ];

  it('are no drift of the profile while one of its two engines does as much as it says', () => {
    const fleet = new Fleet();
    fleet.run(30, { a: quiet, b: overrun });
    expect(fleet.watch.drifts(both)).toEqual([]);
    const overrunAlike = new Fleet();
    overrunAlike.run(30, { a: overrun, b: overrun });
    expect(overrunAlike.watch.drifts(both)).toMatchObject([{ factor: expect.closeTo(1 / 0.7) }]);
  });

  it('are drift of the profile when the middle engine of it has one', () => {
    const fleet = new Fleet();
    fleet.run(30, { a: quiet, b: overrun });
    expect(fleet.watch.drifts(both.slice(1))).toEqual([
      { profileId: 'p', kind: 'work', factor: expect.closeTo(1 / 0.7), sinceMs: expect.any(Number) },
    ]);
    expect(fleet.watch.drifts([...both, { id: 'c', profile: profileOf(1) }].slice(0, 1))).toEqual([]);
  });
});

it('a penalty takes off only what the measured capacity did not: the lower of both holds', () => {
  const unit = { min: 0, max: 0.9, noNaN: true };
  fc.assert(
    fc.property(fc.double(unit), fc.double({ ...unit, min: 0.5, max: 1 }), (penalty, share) => {
      expect(share * (1 - penaltyBeyond(share, penalty))).toBeCloseTo(Math.min(share, 1 - penalty));
    }),
  );
});
