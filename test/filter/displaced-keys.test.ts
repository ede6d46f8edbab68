import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import { keyHash } from '../../wire/hash.js';
import { SYNC_DISPLACED_HEADER } from '../../wire/names.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { DisplacedBoard } from '../../xds-server/sync/displaced-board.js';
import {
  answered,
  config,
  displaced,
  FIRST,
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

  it('are told by a VM that places nothing, too, as it may hold the lease while requests still use it', () => {
    const host = new Host(module);
    const drains = host.startVm({ ...config, placement: false });
    deliver(drains, twoEngines);
    const { vm, key } = displaced(host.startVm(config));
    vm.tick();
    callAgain(drains);
    expect(reported(drains)).toEqual([keyHash(twoEngines.salt, '', key) & ~1n]);
  });
});
