import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { Random } from '../../simulator/random.js';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import { awayHash, keyHash, steerPoint } from '../../wire/hash.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import {
  answered,
  config,
  displaced,
  FIRST,
  keys,
  keysOf,
  LATER,
  occupy,
  ownersOf,
  send,
  started,
  twoEngines,
} from './placements.js';
import { deliver, engineOf, sketch } from './snapshots.js';

const module = filterModule();

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

it('nothing is displaced where placement is off, nor a key that is not steered beside others that are', () => {
  const half = sketch([{ weight: 1 }, { weight: 1 }], { steered: 0.5 });
  const isObserved = (key: string) => steerPoint(keyHash(half.salt, '', key)) >= 2 ** 31;
  for (const [view, options, isMeant] of [
    [twoEngines, { ...config, placement: false }, () => true],
    [half, config, isObserved],
  ] as const) {
    const vm = new Host(module).startVm(options);
    deliver(vm, view);
    occupy(vm, view, 0, 40);
    for (const key of keysOf(view, 0, 1).filter(isMeant).slice(0, 20)) {
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
