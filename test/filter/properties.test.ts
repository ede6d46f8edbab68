import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Stream, Vm } from '../../simulator/filter-host/host.js';
import { keyHash, partitionPoint } from '../../wire/hash.js';
import type { SnapshotSegment } from '../../wire/snapshot-view.js';
import { engineOf, sketch, started } from './snapshots.js';

const ENGINES = 5;
const all = [...Array(ENGINES).keys()];
const keys = Array.from({ length: 1_500 }, (_, index) => `conversation-${index}`);

/** Any partition of five engines, each segment with any backup or none. */
const segments: fc.Arbitrary<SnapshotSegment[]> = fc
  .uniqueArray(fc.integer({ min: 1, max: 2 ** 32 - 1 }), { minLength: 3, maxLength: 14 })
  .chain((cuts) =>
    fc.tuple(
      ...[0, ...cuts.sort((a, b) => a - b)].map((start) =>
        fc
          .tuple(fc.constantFrom(...all), fc.constantFrom(-1, ...all))
          .map(([owner, backup]) => ({ start, owner, backup: backup === owner ? -1 : backup })),
      ),
    ),
  );
const someFail = fc.subarray(all, { maxLength: ENGINES - 1 });

/** Fails everything that is sent to these engines until guardrails keep requests away. */
function fail(vm: Vm, engines: readonly number[]): void {
  for (const key of keys.slice(0, 400)) {
    const stream = vm.request({ 'x-session-id': key });
    if (engines.includes(engineOf(stream.endpoints[0]))) stream.respond(503);
    else stream.respond(200);
    stream.vanish();
  }
}

describe('under any subset of guardrails', () => {
  it('keys of healthy engines stay, others go to their backups, and shares are those of the segments', () => {
    fc.assert(
      fc.property(segments, someFail, (list, failing) => {
        const view = sketch(
          all.map(() => ({ weight: 1 })),
          { pool: { segments: list, retryRatio: 1 } },
        );
        const vm = started(view);
        fail(vm, failing);
        const ejected = ejectedOf(vm);
        const isUp = (engine: number) => !(failing.includes(engine) && ejected.has(engine));
        const counts = all.map(() => 0);
        let placed = 0;
        for (const key of keys) {
          const stream = vm.request({ 'x-session-id': key });
          const home = engineOf(stream.endpoints[0]);
          const reason = stream.respond(200).decision.reason;
          stream.end();
          const point = partitionPoint(keyHash('pepper', '', key));
          const { owner, backup } = list.findLast(({ start }) => start <= point)!;
          if (isUp(owner)) expect([home, reason]).toEqual([owner, 'planned']);
          else if (backup >= 0 && isUp(backup)) expect([home, reason]).toEqual([backup, 'guardrail']);
          else expect([isUp(home), reason]).toEqual([true, 'scan']);
          if (reason === 'scan') continue;
          counts[home]!++;
          placed++;
        }
        const lengths = lengthsOf(list, isUp);
        const whole = lengths.reduce((sum, length) => sum + length, 0);
        if (placed > 0) expect(whole).toBeGreaterThan(0);
        for (const engine of all) {
          const share = whole === 0 ? 0 : lengths[engine]! / whole;
          const deviation = Math.sqrt(placed * share * (1 - share));
          // Where few keys are expected, their number is no normal variable: four more are as rare as five deviations.
          expect(Math.abs(counts[engine]! - placed * share)).toBeLessThanOrEqual(5 * deviation + 4);
        }
      }),
      { numRuns: 25 },
    );
  });
});

/** Engines that none of the keys goes to: ejected, if they had failed; one with too few requests to be judged is not. */
function ejectedOf(vm: Vm): Set<number> {
  const ejected = new Set(all);
  for (const key of keys) {
    const stream = vm.request({ 'x-session-id': key });
    ejected.delete(engineOf(stream.endpoints[0]));
    stream.vanish();
  }
  return ejected;
}

/** Length of the segments that each engine serves, as owner or backup. */
function lengthsOf(list: readonly SnapshotSegment[], isUp: (engine: number) => boolean): number[] {
  const lengths = all.map(() => 0);
  list.forEach(({ start, owner, backup }, index) => {
    const length = (list[index + 1]?.start ?? 2 ** 32) - start;
    if (isUp(owner)) lengths[owner]! += length;
    else if (backup >= 0 && isUp(backup)) lengths[backup]! += length;
  });
  return lengths;
}

describe('eligibility', () => {
  it('holds on every path: guardrail, overflow, limits, retries, drains of news, whatever the mode', () => {
    const step = fc.record({
      pool: fc.integer({ min: 0, max: 1 }),
      status: fc.constantFrom(200, 200, 429, 503),
      attempts: fc.integer({ min: 1, max: 3 }),
      waitMs: fc.constantFrom(0, 0, 100, 5_000, 40_000),
      isBodyless: fc.boolean(),
      keepsOpen: fc.boolean(),
    });
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        segments,
        fc.array(fc.tuple(share, fc.boolean(), fc.integer({ min: 0, max: 3 })), {
          minLength: 5,
          maxLength: 5,
        }),
        fc.constantFrom(1, 0.5),
        fc.array(step, { maxLength: 120 }),
        (list, traits, steered, steps) => {
          const eligible = [[0, 1], all];
          const [base] = sketch(all.map(() => ({ weight: 1 }))).pools;
          const few = list.map(({ start, owner, backup }) => ({
            start,
            owner: owner % 2,
            backup: backup < 0 || backup % 2 === owner % 2 ? -1 : backup % 2,
          }));
          const vm = started(
            sketch(
              traits.map(([overflow, ready, limit]) => ({
                weight: 1,
                overflow,
                ready,
                replicaLimit: limit,
                replicas: 2,
              })),
              {
                steered,
                models: [
                  { name: 'few', pool: 0 },
                  { name: 'all', pool: 1 },
                ],
                pools: [
                  { ...base!, id: 'few', cluster: 'pool-few', engines: [0, 1], segments: few },
                  { ...base!, id: 'all', cluster: 'pool-all', engines: all, segments: list },
                ],
              },
            ),
          );
          const open: Stream[] = [];
          for (const [index, { pool, status, attempts, waitMs, isBodyless, keepsOpen }] of steps.entries()) {
            const model = pool === 0 ? 'few' : 'all';
            const stream = vm.request(
              { 'x-wardrop-model': model, 'x-session-id': `k${index % 9}` },
              { ended: isBodyless },
            );
            for (const endpoint of stream.endpoints) expect(eligible[pool]).toContain(engineOf(endpoint));
            if (stream.forwarded) expect(stream.header('x-wardrop-cluster')).toBe(`pool-${model}`);
            if (stream.endpoints.length > 0)
              stream.respond(status, { attempts: Math.min(attempts, stream.retries + 1) });
            if (keepsOpen && stream.forwarded) open.push(stream);
            else stream.vanish();
            if (waitMs === 0) continue;
            vm.host.nowMs += waitMs;
            vm.tick();
            for (const one of open.splice(0)) one.vanish();
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});
