import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream } from '../../simulator/filter-host/host.js';
import { id64, keyHash, overflowPoint } from '../../wire/hash.js';
import { deliver, type EngineSketch, engineOf, home, sketch, started } from './snapshots.js';

const module = filterModule();
const keys = Array.from({ length: 3000 }, (_, index) => `conversation-${index}`);

const homes = (engines: readonly EngineSketch[], list = keys) => {
  const vm = started(sketch(engines));
  return new Map(list.map((key) => [key, home(vm, key)]));
};

describe('overflow of an engine', () => {
  const calm = homes([{ weight: 1 }, { weight: 1 }, { weight: 1 }, { weight: 1 }]);

  it('moves that share of its keys, and nobody else’s, to their backups, the same in every VM', () => {
    const moved = homes([{ weight: 1, overflow: 0.4 }, { weight: 1 }, { weight: 1 }, { weight: 1 }]);
    const own = keys.filter((key) => engineOf(calm.get(key)) === 0);
    const gone = own.filter((key) => moved.get(key) !== calm.get(key));
    // Three and a half standard deviations of about 750 draws.
    expect(Math.abs(gone.length / own.length - 0.4)).toBeLessThan(0.063);
    for (const key of keys) {
      const leaves =
        own.includes(key) && overflowPoint(keyHash('pepper', '', key), id64('e0')) < 0.4 * 2 ** 32;
      expect(engineOf(moved.get(key))).toBe(leaves ? 1 : engineOf(calm.get(key)));
    }
  });

  it('says so', () => {
    const vm = started(sketch([{ weight: 1, overflow: 1 }, { weight: 0 }]));
    const stream = vm.request({ 'x-session-id': 'a' }).respond(200);
    expect(stream.decision.reason).toBe('overflow');
    expect(stream.decision.engine).toBe('e1');
  });

  it('never returns a moved key when the fraction grows, and reaches exactly the fraction of points', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(share, share, share, (a, b, other) => {
        const [less, more] = [Math.min(a, b), Math.max(a, b)];
        const at = (overflow: number) =>
          homes([{ weight: 1, overflow }, { weight: 1, overflow: other }, { weight: 1 }], keys.slice(0, 60));
        const before = at(less);
        const after = at(more);
        for (const [key, where] of before) if (engineOf(where) !== 0) expect(after.get(key)).toBe(where);
      }),
      { numRuns: 30 },
    );
  });

  it('goes on to an engine that has room when the backup overflows, too', () => {
    const engines = [
      { weight: 1, overflow: 1 },
      { weight: 1, overflow: 1 },
      { weight: 1, overflow: 1 },
      { weight: 1 },
    ];
    for (const where of homes(engines).values()) expect(engineOf(where)).toBe(3);
  });

  it('moves a key that makes up much of the load request by request, so that its load is split', () => {
    const vm = started(sketch([{ weight: 1, overflow: 0.5 }, { weight: 0 }]));
    const cold = new Map<string, Set<string | undefined>>();
    const hot: number[] = [];
    for (let i = 0; i < 3_000; i++) {
      const key = i % 5 < 2 ? 'hot' : `cold-${i % 40}`;
      const where = home(vm, key);
      if (key === 'hot') hot.push(engineOf(where));
      else cold.set(key, (cold.get(key) ?? new Set()).add(where));
    }
    const moved = hot.slice(200).filter((engine) => engine === 1).length / (hot.length - 200);
    expect(Math.abs(moved - 0.5)).toBeLessThan(0.06);
    for (const places of cold.values()) expect(places.size).toBe(1);
  });

  it('moves nothing when there is nobody else', () => {
    for (const engines of [
      [{ weight: 1, overflow: 1 }],
      [
        { weight: 1, overflow: 1 },
        { weight: 1, overflow: 1 },
      ],
      [
        { weight: 1, overflow: 1 },
        { weight: 1, ready: false },
      ],
    ]) {
      const without = homes(engines.map(({ overflow: _, ...engine }: EngineSketch) => engine));
      expect(homes(engines)).toEqual(without);
    }
  });

  it('of a replica moves its keys to the second choice within the engine', () => {
    const view = sketch([{ weight: 1, replicas: 4 }]);
    const [engine] = view.engines;
    const busy = {
      ...view,
      engines: [
        {
          ...engine!,
          replicas: engine!.replicas.map((replica, at) =>
            at === 2 ? { ...replica, overflow: 0.5 } : replica,
          ),
        },
      ],
    };
    const calmVm = started(view);
    const vm = started(busy);
    let own = 0;
    let gone = 0;
    for (const key of keys) {
      const before = calmVm.request({ 'x-session-id': key });
      const after = home(vm, key);
      if (before.endpoints[0] !== '10.0.0.2:8000') expect(after).toBe(before.endpoints[0]);
      else {
        own++;
        if (after !== before.endpoints[0]) gone++;
        expect([before.endpoints[0], before.endpoints[1]]).toContain(after);
      }
      before.respond(200).end();
    }
    expect(Math.abs(gone / own - 0.5)).toBeLessThan(0.065);
  });

  it('of all replicas of an engine moves nothing among them', () => {
    const view = sketch([{ weight: 1, replicas: 2 }]);
    const [engine] = view.engines;
    const replicas = engine!.replicas.map((replica) => ({ ...replica, overflow: 1 }));
    const [calm, busy] = [started(view), started({ ...view, engines: [{ ...engine!, replicas }] })];
    for (const key of keys.slice(0, 50)) expect(home(busy, key)).toBe(home(calm, key));
  });
});

describe('the emergency brake', () => {
  const busy = (limit: number, count = 3): EngineSketch[] =>
    Array.from({ length: count }, () => ({ weight: 1, replicaLimit: limit }));

  it('sends an engine no more than its limit, and turns the rest away', () => {
    const vm = started(sketch(busy(10)));
    const open: Stream[] = [];
    const refused: Stream[] = [];
    for (const key of keys.slice(0, 100)) {
      const stream = vm.request({ 'x-session-id': key });
      (stream.forwarded ? open : refused).push(stream);
    }
    const counts = [0, 1, 2].map((at) => open.filter((one) => engineOf(one.endpoints[0]) === at).length);
    expect(counts).toEqual([10, 10, 10]);
    expect(refused).toHaveLength(70);
    expect(refused[0]!.reply!.status).toBe(429);
    expect(JSON.parse(refused[0]!.reply!.body).error.code).toBe('overloaded');
    for (const stream of open) stream.respond(200).end();
    expect(vm.request({ 'x-session-id': 'later' }).forwarded).toBe(true);
  });

  it('counts what the other VMs of the Envoy have in flight, as of their last tick', () => {
    const host = new Host(module);
    const vms = [host.startVm(), host.startVm(), host.startVm(), host.startVm()];
    deliver(vms[0]!, sketch(busy(10, 1)));
    const tick = () => {
      host.nowMs += 100;
      for (const vm of vms) vm.tick();
    };
    tick();
    const open: Stream[] = [];
    let most = 0;
    for (let round = 0; round < 50; round++) {
      for (const vm of vms) {
        const stream = vm.request({ 'x-session-id': `r${round}` });
        if (stream.forwarded) open.push(stream);
      }
      most = Math.max(most, open.length);
      tick();
    }
    expect(most).toBeGreaterThanOrEqual(10);
    // A VM knows its own at once, those of the others as of their last tick: what these admit in two is the excess.
    expect(most).toBeLessThanOrEqual(10 + 2 * (vms.length - 1));
    for (const stream of open) stream.end();
    tick();
    tick();
    expect(vms.every((vm) => vm.request({ 'x-session-id': 'x' }).forwarded)).toBe(true);
  });

  it.each([0, 3_600_000])(
    'forgets the requests of a VM that is gone, the clock set back by %i ms',
    (backMs) => {
      const host = new Host(module);
      const gone = host.startVm();
      deliver(gone, sketch(busy(10, 1)));
      for (let i = 0; i < 10; i++) gone.request({ 'x-session-id': `k${i}` });
      gone.tick();
      const vm = host.startVm();
      vm.tick();
      expect(vm.request().reply?.status).toBe(429);
      host.nowMs -= backMs;
      for (let second = 0; second < 5; second++) {
        host.nowMs += 1_000;
        vm.tick();
      }
      expect(vm.request().forwarded).toBe(true);
    },
  );

  it('brings nobody back who is ejected: those who are well and full do not mean that everybody is ill', () => {
    const vm = started(sketch([{ weight: 1, replicaLimit: 1 }, { weight: 1 }]));
    for (const key of keys.slice(0, 60)) {
      const stream = vm.request({ 'x-session-id': key });
      if (engineOf(stream.endpoints[0]) === 1) stream.respond(503);
      stream.end();
    }
    const first = vm.request({ 'x-session-id': 'a' });
    expect(engineOf(first.endpoints[0])).toBe(0);
    expect(vm.request({ 'x-session-id': 'b' }).reply?.status).toBe(429);
  });

  it('of 0 sends nothing', () => {
    const vm = started(sketch([{ weight: 1, replicaLimit: 0 }, { weight: 0 }]));
    const stream = vm.request({ 'x-session-id': 'a' }).respond(200);
    expect(engineOf(stream.endpoints[0])).toBe(1);
    expect(stream.decision.reason).toBe('overflow');
  });
});
