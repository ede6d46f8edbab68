import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Vm } from '../../simulator/filter-host/host.js';
import { id64, keyHash, partitionPoint, replicaScore } from '../../wire/hash.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { anySnapshot } from './any-snapshot.js';
import { deliver, type EngineSketch, engineOf, home, sketch, started } from './snapshots.js';

const keys = Array.from({ length: 4000 }, (_, index) => `conversation-${index}`);

function homes(vm: Vm): Map<string, string | undefined> {
  return new Map(keys.map((key) => [key, home(vm, key)]));
}

/** Fails requests to a replica until the VM no longer sends any there. */
function eject(vm: Vm, address: string): void {
  for (const key of keys) {
    const stream = vm.request({ 'x-session-id': key });
    const hit = stream.endpoints[0] === address;
    if (hit) stream.respond(503);
    stream.vanish();
  }
  expect(keys.slice(0, 500).map((key) => home(vm, key))).not.toContain(address);
}

/** The endpoint by the definition: owner of the key's segment, then the replica with the highest score. */
function planned(view: SnapshotView, key: string): string {
  const hash = keyHash(view.salt, '', key);
  const segment = view.pools[0]!.segments.findLast(({ start }) => start <= partitionPoint(hash))!;
  const scored = view.engines[segment.owner]!.replicas.map(({ address }) => ({
    address,
    score: replicaScore(hash, id64(address)),
  }));
  return scored.reduce((best, next) => (next.score > best.score ? next : best)).address;
}

describe('the planned pick', () => {
  it('is the owner of the segment and the replica with the highest score', () => {
    const view = sketch([
      { weight: 5, replicas: 3 },
      { weight: 2, replicas: 7 },
      { weight: 0.1 },
      { weight: 0 },
    ]);
    const vm = started(view);
    for (const key of keys.slice(0, 1000)) expect(home(vm, key)).toBe(planned(view, key));
  });

  it('gives each engine its weight of the keys, within sampling error', () => {
    const weights = [0.5, 0.3, 0.15, 0.05];
    const vm = started(sketch(weights.map((weight) => ({ weight, replicas: 2 }))));
    const shares = weights.map(() => 0);
    for (const address of homes(vm).values()) shares[engineOf(address)]! += 1 / keys.length;
    for (const [engine, weight] of weights.entries()) {
      const deviation = Math.sqrt((weight * (1 - weight)) / keys.length);
      expect(Math.abs(shares[engine]! - weight)).toBeLessThan(3.5 * deviation);
    }
  });

  it('gives requests without a key the same shares, and says so', () => {
    const vm = started(sketch([{ weight: 0.7 }, { weight: 0.3 }]));
    const streams = Array.from({ length: 4000 }, () => vm.request());
    const share = streams.filter((stream) => engineOf(stream.endpoints[0]) === 0).length / streams.length;
    expect(Math.abs(share - 0.7)).toBeLessThan(0.026);
    expect(streams[0]!.respond(200).decision.reason).toBe('no-key');
  });
});

describe('a burst without keys', () => {
  it('is shared as planned in every slice of it and from every Envoy, with no long runs', () => {
    const view = sketch([{ weight: 1 }, { weight: 1 }, { weight: 1 }, { weight: 1 }]);
    for (let run = 0; run < 50; run++) {
      const edges = [started(view), started(view)];
      const sent = Array.from({ length: 400 }, (_, at) => engineOf(edges[at % 2]!.request().endpoints[0]));
      for (let start = 0; start < sent.length; start += 40) {
        const slice = sent.slice(start, start + 40);
        for (let engine = 0; engine < 4; engine++) {
          const share = slice.filter((each) => each === engine).length / slice.length;
          expect(Math.abs(share - 0.25)).toBeLessThanOrEqual(0.05);
        }
      }
      expect(longestRun(sent)).toBeLessThanOrEqual(4);
    }
  });
});

function longestRun(values: readonly number[]): number {
  let longest = 0;
  let run = 0;
  for (const [at, value] of values.entries()) {
    run = value === values[at - 1] ? run + 1 : 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

describe('an endpoint list', () => {
  it('is one longer than the retries granted, repeats nobody and names eligible engines only', () => {
    fc.assert(
      fc.property(
        anySnapshot,
        fc.array(fc.constantFrom(200, 503), { maxLength: 60 }),
        ({ needs, classRules, steered, ...any }, statuses) => {
          const models = any.models.filter(({ pool }) => pool >= 0).map(({ name, pool }) => ({ name, pool }));
          const vm = started({ ...any, models, frontendId: 'west' });
          for (const [index, status] of statuses.entries()) {
            const model = models[index % Math.max(models.length, 1)];
            if (!model) return;
            const stream = vm.request({ 'x-wardrop-model': model.name, 'x-session-id': `k${index % 7}` });
            const pool = any.pools[model.pool]!;
            const eligible = pool.engines.flatMap((engine) => any.engines[engine]!.replicas);
            const ready = eligible.filter((replica) => replica.ready).map((replica) => replica.address);
            if (stream.forwarded) {
              expect(stream.header('x-wardrop-cluster')).toBe(pool.cluster);
              expect(stream.endpoints).toHaveLength(stream.retries + 1);
              for (const endpoint of stream.endpoints) expect(ready).toContain(endpoint);
              const engines = any.engines.filter((engine) => engine.replicas.length > 0);
              if (engines.length === 1) expect(new Set(stream.endpoints).size).toBe(stream.endpoints.length);
              stream.respond(status).end();
            } else {
              expect([429, 503]).toContain(stream.reply?.status);
              if (stream.reply?.status === 503) expect(ready).toEqual([]);
            }
          }
        },
      ),
      { numRuns: 200 },
    );
  });

  it('goes on with another replica of the engine, then with the backup of the segment', () => {
    const vm = started(sketch([{ weight: 1, replicas: 3 }, { weight: 1, replicas: 2 }, { weight: 1 }]));
    for (const key of keys.slice(0, 100)) {
      const stream = vm.request({ 'x-session-id': key });
      const engines = stream.endpoints.map(engineOf);
      const owner = engines[0]!;
      const backup = (owner + 1) % 3;
      if (stream.retries === 2 && owner < 2) expect(engines).toEqual([owner, owner, backup]);
      stream.respond(200).end();
    }
  });
});

describe('when a replica fails', () => {
  const engines: EngineSketch[] = [{ weight: 1, replicas: 4 }, { weight: 1, replicas: 2 }, { weight: 1 }];

  it('its keys alone move, each to its second choice among the replicas of the engine', () => {
    const view = sketch(engines);
    const vm = started(view);
    const before = homes(vm);
    eject(vm, '10.0.0.1:8000');
    const without: SnapshotView = {
      ...view,
      engines: view.engines.map((engine) => ({
        ...engine,
        replicas: engine.replicas.filter(({ address }) => address !== '10.0.0.1:8000'),
      })),
    };
    for (const [key, now] of homes(vm)) {
      expect(now).toBe(before.get(key) === '10.0.0.1:8000' ? planned(without, key) : before.get(key));
    }
  });

  it('and was the last of its engine, the keys of the engine go to the backups of their segments', () => {
    const vm = started(sketch(engines));
    const before = homes(vm);
    eject(vm, '10.0.2.0:8000');
    for (const [key, now] of homes(vm)) {
      if (engineOf(before.get(key)) === 2) expect(engineOf(now)).toBe(0);
      else expect(now).toBe(before.get(key));
    }
    const moved = keys.find((key) => engineOf(before.get(key)) === 2)!;
    const stream = vm.request({ 'x-session-id': moved });
    expect(stream.respond(200).decision.reason).toBe('guardrail');
    expect(stream.decision.engine).toBe('e0');
  });

  it('and the backup is not usable either, the next engine in fixed order takes the key, the same in every VM', () => {
    const view = sketch([
      { weight: 1 },
      { weight: 0, ready: false },
      { weight: 0 },
      { weight: 0 },
      { weight: 0 },
    ]);
    const vms = [started(view), started(view)];
    for (const vm of vms) eject(vm, '10.0.0.0:8000');
    const spread = keys.slice(0, 400).map((key) => vms.map((vm) => home(vm, key)));
    for (const [first, second] of spread) expect(first).toBe(second);
    expect(new Set(spread.map(([first]) => engineOf(first)))).toEqual(new Set([2, 3, 4]));
    expect(vms[0]!.request({ 'x-session-id': 'a' }).respond(200).decision.reason).toBe('scan');
  });

  it('and so does everybody, traffic is spread as planned and the reason says so', () => {
    const view = sketch([{ weight: 3 }, { weight: 1 }]);
    const vm = started(view);
    for (let i = 0; i < 20; i++) {
      const stream = vm.request({ 'x-session-id': `k${i}` });
      stream.respond(503, { attempts: stream.retries + 1 }).end();
    }
    for (const key of keys.slice(0, 200)) {
      const stream = vm.request({ 'x-session-id': key });
      expect(stream.endpoints[0]).toBe(planned(view, key));
      expect(stream.respond(503).decision.reason).toBe('floor');
    }
  });
});

describe('readiness', () => {
  it('of the snapshot moves a key like a failure does', () => {
    const vm = started(sketch([{ weight: 1, ready: false }, { weight: 1 }]));
    for (const address of homes(vm).values()) expect(address).toBe('10.0.1.0:8000');
  });

  it('that nobody has means 503 with advice, as long as the news are fresh', () => {
    const vm = started(sketch([{ weight: 1, ready: false }]));
    const { reply } = vm.request({ 'x-session-id': 'a' });
    expect(reply?.status).toBe(503);
    expect(JSON.parse(reply!.body)).toMatchObject({ error: { type: 'server_error', code: 'unavailable' } });
    expect(reply?.headers.map(([name]) => name)).toContain('retry-after');
  });

  it('that nobody has means nothing when the news are older than 30 s', () => {
    const vm = started(sketch([{ weight: 1, ready: false }]));
    vm.host.nowMs += 31_000;
    vm.tick();
    const stream = vm.request({ 'x-session-id': 'a' });
    expect(stream.endpoints).toEqual(['10.0.0.0:8000']);
    expect(stream.respond(200).decision.reason).toBe('floor');
  });

  it('regained ends an ejection at once', () => {
    const vm = started(sketch([{ weight: 1 }, { weight: 0 }]));
    for (let i = 0; i < 3; i++) vm.request({ 'x-session-id': 'a' }).respond(503).end();
    expect(home(vm, 'a')).toBe('10.0.1.0:8000');
    deliver(vm, sketch([{ weight: 1, ready: false }, { weight: 0 }], { version: 2 }));
    expect(home(vm, 'a')).toBe('10.0.1.0:8000');
    deliver(vm, sketch([{ weight: 1 }, { weight: 0 }], { version: 3 }));
    expect(home(vm, 'a')).toBe('10.0.0.0:8000');
  });
});
