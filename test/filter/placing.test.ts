import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { Random } from '../../simulator/random.js';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import { awayHash, keyHash, partitionPoint, secondHash } from '../../wire/hash.js';
import { SYNC_DISPLACED_HEADER } from '../../wire/names.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { DisplacedBoard } from '../../xds-server/sync/displaced-board.js';
import { deliver, engineOf, sketch } from './snapshots.js';

const module = filterModule();
const config = { frontendId: 'west', readBodies: true, placement: true };
const FIRST = '{"messages":[{"role":"user","content":"hi"}]}';
const LATER = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}';
const keys = Array.from({ length: 3_000 }, (_, index) => `conversation-${index}`);
const twoEngines = sketch([{ weight: 1 }, { weight: 1 }]);

function started(view: SnapshotView, host = new Host(module)): Vm {
  const vm = host.startVm(config);
  deliver(vm, view);
  return vm;
}

function send(vm: Vm, key: string | undefined, body: string): Stream {
  return vm.request(key === undefined ? {} : { 'x-session-id': key }).send(body, true);
}

/** Engine and reason of a request that is answered at once. */
function answered(stream: Stream): { engine: number; reason: string | undefined } {
  const reason = stream.respond(200).decision.reason;
  stream.end();
  return { engine: engineOf(stream.endpoints[0]), reason };
}

/** Engines that own the two points of a key. */
function ownersOf(view: SnapshotView, key: string): [home: number, other: number] {
  const hash = keyHash(view.salt, '', key);
  const owner = (point: number) => view.pools[0]!.segments.findLast(({ start }) => start <= point)!.owner;
  return [owner(partitionPoint(hash)), owner(partitionPoint(secondHash(hash)))];
}

function keysOf(view: SnapshotView, home: number, other: number): string[] {
  return keys.filter((key) => {
    const owners = ownersOf(view, key);
    return owners[0] === home && owners[1] === other;
  });
}

/** Keeps requests of conversations that go on under way at an engine. */
function occupy(vm: Vm, view: SnapshotView, engine: number, count: number): Stream[] {
  return keysOf(view, engine, engine)
    .slice(-count)
    .map((key) => send(vm, key, LATER));
}

/** A VM whose first engine is busy, and a conversation that has begun at the second instead. */
function displaced(vm = started(twoEngines)) {
  const busy = occupy(vm, twoEngines, 0, 10);
  const [key, another] = keysOf(twoEngines, 0, 1) as [string, string];
  expect(answered(send(vm, key, FIRST))).toEqual({ engine: 1, reason: 'placed' });
  for (const stream of busy) stream.respond(200).end();
  return { vm, key, another };
}

describe('a new conversation', () => {
  it('begins where its key says while no engine has clearly more in flight for its share', () => {
    const view = sketch([{ weight: 5 }, { weight: 3 }, { weight: 1 }]);
    const vm = started(view);
    for (const key of keys.slice(0, 300)) {
      expect(answered(send(vm, key, FIRST))).toEqual({ engine: ownersOf(view, key)[0], reason: 'planned' });
    }
  });

  it('begins at the owner of its second point when the first has more in flight, by three or more', () => {
    const vm = started(twoEngines);
    const [early, late] = keysOf(twoEngines, 0, 1) as [string, string];
    occupy(vm, twoEngines, 0, 2);
    expect(answered(send(vm, early, FIRST))).toEqual({ engine: 0, reason: 'planned' });
    occupy(vm, twoEngines, 0, 3);
    expect(answered(send(vm, late, FIRST))).toEqual({ engine: 1, reason: 'placed' });
    const [stays] = keysOf(twoEngines, 0, 0) as [string];
    expect(answered(send(vm, stays, FIRST))).toEqual({ engine: 0, reason: 'planned' });
  });

  it('is followed by its later requests, also when all is even again, and by those without a body', () => {
    const { vm, key, another } = displaced();
    expect(answered(send(vm, key, LATER))).toEqual({ engine: 1, reason: 'placed' });
    expect(answered(send(vm, key, FIRST))).toEqual({ engine: 1, reason: 'placed' });
    const read = vm.request(
      { ':method': 'GET', ':path': '/v1/responses/r', 'x-session-id': key },
      { ended: true },
    );
    expect(answered(read).engine).toBe(1);
    expect(answered(send(vm, another, FIRST))).toEqual({ engine: 0, reason: 'planned' });
  });

  it('begins at the replica with fewer in flight where both points fall to one engine', () => {
    const view = sketch([{ weight: 1, replicas: 2 }]);
    const vm = started(view);
    const at = (stream: Stream) => Number(stream.endpoints[0]!.match(/\.(\d):/)![1]);
    const open = keys.slice(0, 60).map((key) => send(vm, key, LATER));
    for (const stream of open) if (at(stream) === 1) stream.respond(200).end();
    const placed = keys.slice(100, 300).map((key) => {
      const stream = send(vm, key, FIRST);
      const replica = at(stream);
      return { ...answered(stream), replica };
    });
    expect(new Set(placed.map(({ reason }) => reason))).toEqual(new Set(['planned', 'placed']));
    for (const { reason, replica } of placed) if (reason === 'placed') expect(replica).toBe(1);
  });

  it('without a key does so, too, and nobody remembers it', () => {
    const vm = started(twoEngines);
    occupy(vm, twoEngines, 0, 40);
    const outcomes = keys.slice(0, 200).map(() => answered(send(vm, undefined, FIRST)));
    const share = outcomes.filter(({ engine }) => engine === 0).length / outcomes.length;
    expect(Math.abs(share - 0.25)).toBeLessThan(0.1);
    expect(new Set(outcomes.map(({ reason }) => reason))).toEqual(new Set(['no-key', 'placed']));
    vm.tick();
    expect([...vm.host.shared.keys()].filter((name) => name.includes('displaced'))).toEqual([]);
  });
});

describe('where this Envoy has too much in flight at the only engine of its plan', () => {
  const busy = sketch([{ weight: 1, busyAbove: 4 }, { weight: 0 }]);
  const [key, another] = keys as [string, string];
  const fill = (vm: Vm, count: number) => keys.slice(-count).map((each) => send(vm, each, LATER));
  const free = (streams: Stream[]) => {
    for (const stream of streams) stream.respond(200).end();
  };

  it('a new conversation begins at the backup, and its later requests follow when all is well again', () => {
    const vm = started(busy);
    const streams = fill(vm, 4);
    expect(answered(send(vm, key, FIRST))).toEqual({ engine: 0, reason: 'planned' });
    streams.push(...fill(vm, 1));
    expect(answered(send(vm, another, FIRST))).toEqual({ engine: 1, reason: 'overflow' });
    expect(answered(send(vm, undefined, FIRST))).toEqual({ engine: 1, reason: 'overflow' });
    expect(answered(send(vm, 'in-between', LATER))).toEqual({ engine: 0, reason: 'planned' });
    free(streams);
    expect(answered(send(vm, another, LATER))).toEqual({ engine: 1, reason: 'overflow' });
    const read = vm.request({ ':method': 'GET', ':path': '/v1/x', 'x-session-id': another }, { ended: true });
    expect(answered(read).engine).toBe(1);
    expect(answered(send(vm, 'fresh', FIRST))).toEqual({ engine: 0, reason: 'planned' });
  });

  it('it goes home while the backup is of no use, and begins there where the backup is busy itself', () => {
    const vm = started(busy);
    const streams = fill(vm, 5);
    expect(answered(send(vm, key, FIRST)).engine).toBe(1);
    deliver(
      vm,
      sketch(
        [
          { weight: 1, busyAbove: 4 },
          { weight: 0, ready: false },
        ],
        { version: 2 },
      ),
    );
    expect(answered(send(vm, key, LATER))).toEqual({ engine: 0, reason: 'planned' });
    expect(answered(send(vm, another, FIRST))).toEqual({ engine: 0, reason: 'planned' });
    deliver(
      vm,
      sketch(
        [
          { weight: 1, busyAbove: 4 },
          { weight: 0, busyAbove: 0 },
        ],
        { version: 3 },
      ),
    );
    expect(answered(send(vm, key, LATER)).engine).toBe(1);
    streams.push(send(vm, key, LATER));
    expect(answered(send(vm, 'fresh', FIRST))).toEqual({ engine: 0, reason: 'planned' });
    free(streams);
  });

  it('counts what the other VMs of the Envoy have in flight, as of the last tick', () => {
    const host = new Host(module);
    const vm = started(busy, host);
    const beside = host.startVm(config);
    beside.tick();
    fill(beside, 5);
    expect(answered(send(vm, key, FIRST)).engine).toBe(0);
    beside.tick();
    vm.tick();
    expect(answered(send(vm, another, FIRST))).toEqual({ engine: 1, reason: 'overflow' });
  });

  it('is told to other Envoys, which follow', () => {
    const vm = started(busy);
    fill(vm, 5);
    send(vm, key, FIRST);
    const hash = awayHash(keyHash(busy.salt, '', key)) & ~1n;
    vm.tick();
    vm.answer(304);
    vm.host.nowMs += 1_000;
    vm.tick();
    expect(decodeUsageReport(vm.call!.body).displaced).toEqual([hash]);
    const other = started(busy);
    other.tick();
    other.answer(200, encodeDisplaced({ hashes: [hash], cursor: 1 }));
    expect(answered(send(other, key, LATER))).toEqual({ engine: 1, reason: 'overflow' });
  });
});

it('whatever may go on stays where its key says: later turns, texts to complete, bodies that were not read', () => {
  const vm = started(twoEngines);
  occupy(vm, twoEngines, 0, 40);
  const [one, two, three] = keysOf(twoEngines, 0, 1) as [string, string, string];
  expect(answered(send(vm, one, LATER)).engine).toBe(0);
  expect(answered(send(vm, two, '{"prompt":"Once upon a time"}')).engine).toBe(0);
  expect(answered(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': three })).engine).toBe(0);
});

it('what the client says is new is placed where no body tells, and a later turn is none whatever it says', () => {
  const vm = started(twoEngines);
  occupy(vm, twoEngines, 0, 40);
  const says = (key: string, value = 'true') => ({ 'x-session-id': key, 'x-wardrop-new': value });
  const mine = keysOf(twoEngines, 0, 1).slice(0, 5) as [string, string, string, string, string];
  const inHeaders = (key: string, value?: string) =>
    answered(vm.request({ 'x-wardrop-model': 'm', ...says(key, value) }));
  expect(inHeaders(mine[0])).toEqual({ engine: 1, reason: 'placed' });
  expect(answered(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': mine[0] })).engine).toBe(1);
  expect(answered(vm.request(says(mine[1])).send('{"prompt":"Once upon a time"}', true)).engine).toBe(1);
  expect(answered(vm.request(says(mine[2])).send(LATER, true)).engine).toBe(0);
  for (const value of ['', '1', 'True', 'false']) expect(inHeaders(mine[3], value).engine).toBe(0);
  expect(inHeaders(mine[4]).engine).toBe(1);
});

it('a key that conversations share stays where one of them has begun', () => {
  const vm = started(twoEngines);
  const [shared, fresh] = keysOf(twoEngines, 0, 1) as [string, string];
  expect(answered(send(vm, shared, FIRST)).engine).toBe(0);
  occupy(vm, twoEngines, 0, 40);
  expect(answered(send(vm, fresh, FIRST)).engine).toBe(1);
  expect(answered(send(vm, shared, FIRST))).toEqual({ engine: 0, reason: 'planned' });
});

it('nothing is displaced where placement is off, or where nothing is steered', () => {
  const observing = sketch([{ weight: 1 }, { weight: 1 }], { steered: 0 });
  for (const [view, options] of [
    [twoEngines, { ...config, placement: false }],
    [observing, config],
  ] as const) {
    const vm = new Host(module).startVm(options);
    deliver(vm, view);
    occupy(vm, view, 0, 40);
    for (const key of keysOf(view, 0, 1).slice(0, 20)) {
      const stream = send(vm, key, FIRST);
      expect(stream.respond(200).decision.engine).toBe('e0');
    }
  }
});

it('the flows stay those of the plan, and fewer are in flight at once than by the keys alone', () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 2, maxLength: 4 }),
      fc.integer(),
      (weights, seed) => {
        const view = sketch(weights.map((weight) => ({ weight })));
        const total = weights.reduce((sum, weight) => sum + weight, 0);
        const worst = (placement: boolean) => {
          const vm = new Host(module).startVm({ ...config, placement });
          deliver(vm, view);
          const random = new Random(seed, 'ends');
          const open: Stream[] = [];
          const sent = weights.map(() => 0);
          const now = weights.map(() => 0);
          let excess = 0;
          for (const key of keys) {
            const stream = send(vm, key, FIRST);
            const engine = engineOf(stream.endpoints[0]);
            sent[engine]!++;
            now[engine]!++;
            open.push(stream);
            if (open.length < 60) continue;
            excess += Math.max(...weights.map((weight, each) => (now[each]! * total) / weight));
            const [ended] = open.splice(random.integer({ min: 0, max: open.length - 1 }), 1);
            now[engineOf(ended!.endpoints[0])]!--;
            ended!.respond(200).end();
          }
          return { excess, shares: sent.map((count) => count / keys.length) };
        };
        const placed = worst(true);
        expect(placed.excess).toBeLessThan(worst(false).excess);
        for (const [engine, weight] of weights.entries())
          expect(Math.abs(placed.shares[engine]! - weight / total)).toBeLessThan(0.035);
      },
    ),
    { numRuns: 5 },
  );
});

describe('a displaced key', () => {
  it('goes home while its engine is not ready, ejected or in nobody’s segment, and comes back', () => {
    const { vm, key } = displaced();
    const engines = twoEngines.engines.map((engine, index) => ({
      ...engine,
      replicas: engine.replicas.map((replica) => ({ ...replica, ready: index === 0 })),
    }));
    deliver(vm, { ...twoEngines, version: 2, engines });
    expect(answered(send(vm, key, LATER))).toEqual({ engine: 0, reason: 'planned' });
    deliver(vm, { ...twoEngines, version: 3 });
    expect(answered(send(vm, key, LATER)).engine).toBe(1);

    for (let failures = 0; failures < 3; failures++) send(vm, key, LATER).respond(503).end();
    expect(answered(send(vm, key, LATER))).toEqual({ engine: 0, reason: 'planned' });

    deliver(vm, sketch([{ weight: 1 }, { weight: 0 }], { version: 4 }));
    expect(answered(send(vm, key, LATER)).engine).toBe(0);
    deliver(vm, sketch([{ weight: 1 }], { version: 5 }));
    expect(answered(send(vm, key, LATER)).engine).toBe(0);
  });

  it('only ever leads to engines that its needs allow', () => {
    const { vm, key } = displaced();
    deliver(vm, {
      ...twoEngines,
      version: 2,
      needs: [{ id: 'eu', when: { kind: 'header', name: 'x-residency', value: 'yes' } }],
      models: [{ name: 'm', pool: 0, needs: [0], pools: [0, 1] }],
      pools: [
        twoEngines.pools[0]!,
        { ...twoEngines.pools[0]!, id: 'm-eu', engines: [0], segments: [{ start: 0, owner: 0, backup: -1 }] },
      ],
    });
    expect(answered(send(vm, key, LATER)).engine).toBe(1);
    const stream = vm.request({ 'x-session-id': key, 'x-residency': 'yes' }).send(LATER, true);
    expect(stream.endpoints.map(engineOf)).toEqual([0]);
  });

  it('goes home after 15 minutes without a request, and does not while it is used', () => {
    const { vm, key } = displaced();
    for (let minutes = 0; minutes < 60; minutes += 10) {
      vm.host.nowMs += 600_000;
      vm.tick();
      expect(answered(send(vm, key, LATER)).engine).toBe(1);
    }
    vm.host.nowMs += 901_000;
    vm.tick();
    expect(answered(send(vm, key, LATER))).toEqual({ engine: 0, reason: 'planned' });
  });

  it('takes no memory but that of a fixed table, from which the oldest go first', () => {
    const vm = started(twoEngines);
    occupy(vm, twoEngines, 0, 40);
    const begin = (number: number) => answered(send(vm, `many-${number}`, FIRST)).reason === 'placed';
    for (let number = 0; number < 4_000; number++) begin(number);
    const before = vm.memoryBytes;
    const displacedKeys: number[] = [];
    for (let number = 4_000; number < 50_000; number++) {
      if (begin(number)) displacedKeys.push(number);
      if (number % 500 === 0) {
        vm.host.nowMs += 1_000;
        vm.tick();
      }
    }
    expect(vm.memoryBytes).toBe(before);
    const follows = (numbers: readonly number[]) =>
      numbers.filter((number) => answered(send(vm, `many-${number}`, LATER)).engine === 1).length /
      numbers.length;
    expect(displacedKeys.length).toBeGreaterThan(10_000);
    expect(follows(displacedKeys.slice(-1_500))).toBeGreaterThan(0.97);
    expect(follows(displacedKeys.slice(0, 2_000))).toBeLessThan(0.2);
  });
});

describe('the VMs of an Envoy', () => {
  it('know a displaced key after their next tick, and so does one that starts later', () => {
    const host = new Host(module);
    const second = host.startVm(config);
    const { vm, key, another } = displaced(started(twoEngines, host));
    second.tick();
    expect(answered(send(second, key, LATER)).engine).toBe(0);
    vm.tick();
    second.tick();
    const third = host.startVm(config);
    third.tick();
    for (const each of [second, third]) {
      expect(answered(send(each, key, LATER))).toEqual({ engine: 1, reason: 'placed' });
      expect(answered(send(each, another, FIRST))).toEqual({ engine: 0, reason: 'planned' });
    }
  });

  it('lose none of what they displace between the same two ticks', () => {
    const host = new Host(module);
    const vms = [started(twoEngines, host), host.startVm(config), host.startVm(config)];
    for (const vm of vms) vm.tick();
    const mine = keysOf(twoEngines, 0, 1).slice(0, 30);
    for (const vm of vms) occupy(vm, twoEngines, 0, 40);
    mine.forEach((key, at) => {
      expect(answered(send(vms[at % 3]!, key, FIRST)).engine).toBe(1);
    });
    for (let round = 0; round < 2; round++) for (const vm of vms) vm.tick();
    for (const vm of vms) {
      for (const key of mine) expect(answered(send(vm, key, LATER)).engine).toBe(1);
    }
  });
});

describe('the Envoys of a frontend', () => {
  const reported = (vm: Vm) => decodeUsageReport(vm.call!.body).displaced;
  const cursor = (vm: Vm) => vm.call!.headers.find(([name]) => name === SYNC_DISPLACED_HEADER)?.[1];
  /** The next call after the one under way is answered with nothing new. */
  const callAgain = (vm: Vm) => {
    if (!vm.call) vm.tick();
    vm.host.nowMs += 1_000;
    vm.answer(304);
    vm.host.nowMs += 100;
    vm.tick();
  };

  it('tell the control server each key once, and follow what it tells of others', () => {
    const { vm, key } = displaced();
    const hash = keyHash(twoEngines.salt, '', key) & ~1n;
    vm.tick();
    callAgain(vm);
    expect(reported(vm)).toEqual([hash]);
    callAgain(vm);
    expect(reported(vm)).toBeUndefined();

    const host = new Host(module);
    const other = started(twoEngines, host);
    const beside = host.startVm(config);
    callAgain(other);
    expect(cursor(other)).toBe('0');
    expect(answered(send(other, key, LATER)).engine).toBe(0);
    host.nowMs += 1_000;
    other.answer(200, encodeDisplaced({ hashes: [hash], cursor: 17 }));
    expect(answered(send(other, key, LATER))).toEqual({ engine: 1, reason: 'placed' });
    other.tick();
    beside.tick();
    expect(answered(send(beside, key, LATER)).engine).toBe(1);
    callAgain(other);
    expect(cursor(other)).toBe('17');
    expect(reported(other)).toBeUndefined();
  });

  it('report again what a failed call may have lost', () => {
    const { vm } = displaced();
    vm.tick();
    callAgain(vm);
    expect(reported(vm)).toHaveLength(1);
    vm.answer(503);
    vm.host.nowMs += 1_000;
    vm.tick();
    expect(reported(vm)).toHaveLength(1);
  });

  it('tell it once, also when another VM comes to call the control server', () => {
    const { vm } = displaced();
    const { host } = vm;
    const next = host.startVm(config);
    vm.tick();
    callAgain(vm);
    expect(reported(vm)).toHaveLength(1);
    callAgain(vm);
    host.nowMs += 10_000;
    next.tick();
    expect(reported(next)).toBeUndefined();
  });

  it('hear all of many messages, in every VM, whatever else they tell each other meanwhile', () => {
    const host = new Host(module);
    const caller = started(twoEngines, host);
    const beside = host.startVm(config);
    occupy(caller, twoEngines, 0, 40);
    const mine = keysOf(twoEngines, 0, 1).slice(0, 5);
    const keyCount = 2_000;
    const theirs = Array.from({ length: keyCount }, (_, index) => `elsewhere-${index}`);
    const board = new DisplacedBoard(() => 1_700_000_000_000);
    board.add(
      'west',
      'another',
      theirs.map((key) => keyHash(twoEngines.salt, '', key) & ~1n),
    );
    callAgain(caller);
    for (const key of mine) expect(answered(send(caller, key, FIRST)).engine).toBe(1);
    for (let round = 0; round < 8; round++) {
      for (let calls = 0; caller.call && calls < 10; calls++) {
        const news = board.after('west', 'this', Number(cursor(caller)));
        if (!news) break;
        caller.answer(200, encodeDisplaced(news));
      }
      host.nowMs += 100;
      caller.tick();
      beside.tick();
    }
    expect(Number(cursor(caller))).toBeGreaterThan(1);
    for (const vm of [caller, beside]) {
      const lost = [...mine, ...theirs].filter((key) => {
        const [, other] = ownersOf(twoEngines, key);
        return answered(send(vm, key, LATER)).engine !== other;
      });
      // A few find the bucket of the table full.
      expect(lost.length).toBeLessThan(keyCount / 100);
    }
  });

  it('refuse what is no such message, count it, and keep the snapshot', () => {
    const good = encodeDisplaced({ hashes: [1n, 2n, 3n], cursor: 5 });
    fc.assert(
      fc.property(
        fc.nat(good.length - 1),
        fc.uint8Array({ minLength: 1, maxLength: 40 }),
        fc.boolean(),
        (cut, junk, isCut) => {
          const bytes = isCut ? good.subarray(0, Math.max(4, cut)) : Buffer.concat([good, junk]);
          const vm = started(twoEngines);
          callAgain(vm);
          vm.answer(200, bytes);
          vm.tick();
          expect(vm.host.metrics.get('wardrop_sync_failures')).toBe(1);
          expect(answered(send(vm, keysOf(twoEngines, 1, 1)[0]!, LATER)).engine).toBe(1);
        },
      ),
      { numRuns: 60 },
    );
  });

  it('are told by a VM that places nothing, too, as it may hold the lease while its listener drains', () => {
    const host = new Host(module);
    const drains = host.startVm({ ...config, placement: false });
    deliver(drains, twoEngines);
    const { vm, key } = displaced(host.startVm(config));
    vm.tick();
    callAgain(drains);
    expect(reported(drains)).toEqual([keyHash(twoEngines.salt, '', key) & ~1n]);
  });
});
