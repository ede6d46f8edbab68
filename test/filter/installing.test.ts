import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import { hash64 } from '../../wire/hash.js';
import * as L from '../../wire/layout.js';
import { decodeSnapshot } from '../../wire/snapshot-reader.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import { anySnapshot } from './any-snapshot.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();

/** A VM that has installed version 1 of a simple snapshot. */
function startedVm(): Vm {
  const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
  deliver(vm, sketch([{ weight: 1 }]));
  return vm;
}

/** Offers the bytes; true when the VM installed them. */
function offer(vm: Vm, bytes: Uint8Array): boolean {
  vm.tick();
  const refusals = vm.host.metrics.get('wardrop_snapshot_refusals')!;
  vm.host.nowMs += 2000;
  if (!vm.call) vm.tick();
  vm.answer(200, bytes);
  vm.tick();
  return vm.host.metrics.get('wardrop_snapshot_refusals') === refusals;
}

/** Requests that visit whatever a snapshot holds. */
function exercise(vm: Vm): void {
  const models = [undefined, 'm', ...'abcdefgh'];
  for (const model of models) {
    for (const ended of [false, true]) {
      const headers: Record<string, string> = { 'x-session-id': `key ${model}`, 'x-tier': 'a' };
      if (model !== undefined) headers['x-wardrop-model'] = model;
      const stream = vm.request(headers, { ended });
      if (!ended && !stream.forwarded && !stream.reply) stream.send('{"tools":[1],"stream":true}', true);
      if (stream.forwarded) stream.respond(503).responseBody('x');
      stream.end();
    }
  }
  vm.host.nowMs += 1100;
  vm.tick();
}

function forge(bytes: Uint8Array): Uint8Array {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  data.setBigUint64(L.HEADER_CHECKSUM, hash64(bytes.subarray(L.HEADER_CHECKED), 0n), true);
  return bytes;
}

describe('installing a snapshot', () => {
  it('takes whatever the writer writes for its frontend, and routes by it', () => {
    fc.assert(
      fc.property(anySnapshot, (view) => {
        const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
        deliver(vm, { ...view, frontendId: 'west' });
        vm.tick();
        expect(vm.host.metrics.get('wardrop_snapshot_version')).toBe(view.version);
        exercise(vm);
      }),
    );
  });

  it('keeps the old one when the new one is for another frontend', () => {
    const vm = startedVm();
    expect(
      offer(vm, encodeSnapshot({ ...sketch([{ weight: 1 }], { version: 2 }), frontendId: 'east' })),
    ).toBe(false);
    expect(vm.host.logs.some((line) => line.endsWith('it is for another frontend'))).toBe(true);
    expect(vm.host.metrics.get('wardrop_snapshot_version')).toBe(1);
    expect(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' }).forwarded).toBe(true);
  });

  it('keeps the old one when the new one is damaged anywhere, and never traps', () => {
    const vm = startedVm();
    const bytes = encodeSnapshot(sketch([{ weight: 1 }, { weight: 2, replicas: 2 }], { version: 2 }));
    fc.assert(
      fc.property(
        fc.oneof(
          fc.nat(bytes.length - 1).map((length) => bytes.slice(0, length)),
          fc.tuple(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 })).map(([at, change]) => {
            const damaged = bytes.slice();
            damaged[at < 12 || at >= L.HEADER_CHECKSUM ? at : 0]! ^= change;
            return damaged;
          }),
          fc.uint8Array({ maxLength: 300 }),
        ),
        (damaged) => {
          expect(offer(vm, damaged)).toBe(false);
          expect(vm.host.metrics.get('wardrop_snapshot_version')).toBe(1);
        },
      ),
      { numRuns: 300 },
    );
    exercise(vm);
  });

  it('never traps on numbers forged under a right checksum, and refuses no snapshot that the reader takes', () => {
    const fields = fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.nat(400), fc.constant(2 ** 32 - 1));
    fc.assert(
      fc.property(
        anySnapshot,
        fc.array(fc.tuple(fc.nat(), fields), { minLength: 1, maxLength: 3 }),
        (view, changes) => {
          const bytes = encodeSnapshot({ ...view, frontendId: 'west' });
          const data = new DataView(bytes.buffer);
          const words = Math.floor((bytes.length - L.HEADER_CHECKED) / 4);
          for (const [word, value] of changes)
            data.setUint32(L.HEADER_CHECKED + (word % words) * 4, value, true);
          forge(bytes);
          const vm = startedVm();
          const installed = offer(vm, bytes);
          if (isReadable(bytes)) expect(installed).toBe(true);
          exercise(vm);
        },
      ),
      { numRuns: 300 },
    );
  });

  it('refuses needs that only a body can tell when bodies are not read', () => {
    const vm = new Host(module).startVm();
    deliver(vm, sketch([{ weight: 1 }]));
    const needs = [{ id: 'vision', when: { kind: 'body', feature: 'images' } }] as const;
    expect(offer(vm, encodeSnapshot(sketch([{ weight: 1 }], { version: 2, needs })))).toBe(false);
  });

  it('keeps what it knows of engines and replicas', () => {
    const vm = startedVm();
    const engines = [{ weight: 1 }, { weight: 0 }];
    deliver(vm, sketch(engines, { version: 2 }));
    for (let i = 0; i < 3; i++)
      vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' }).respond(503).end();
    expect(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' }).endpoints[0]).toBe('10.0.1.0:8000');
    deliver(vm, sketch(engines, { version: 3, planId: '00000000000000ff' }));
    expect(vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' }).endpoints[0]).toBe('10.0.1.0:8000');
  });

  it('finds every engine and replica after any change of the fleet', () => {
    const fleet = fc.subarray([0, 1, 2, 3, 4, 5], { minLength: 1 });
    fc.assert(
      fc.property(fc.array(fleet, { minLength: 2, maxLength: 5 }), (fleets) => {
        const vm = new Host(module).startVm();
        for (const [at, engines] of fleets.entries()) {
          deliver(vm, separate(engines, at + 1));
          const served = engines.map(
            (engine) => vm.request({ 'x-wardrop-model': `m${engine}`, 'x-session-id': 'a' }).endpoints,
          );
          expect(served.flat().sort()).toEqual(
            engines.flatMap((engine) => [`10.0.${engine}.0:8000`, `10.0.${engine}.1:8000`]),
          );
        }
      }),
    );
  });
});

/** Engines of two replicas with a model and a pool each. */
function separate(engines: readonly number[], version: number): SnapshotView {
  const [pool] = sketch([{ weight: 1 }]).pools;
  return sketch([], {
    version,
    models: engines.map((engine, index) => ({ name: `m${engine}`, pool: index })),
    pools: engines.map((engine, index) => ({
      ...pool!,
      id: `p${engine}`,
      engines: [index],
      segments: [{ start: 0, owner: index, backup: -1 }],
    })),
    engines: engines.map((engine) => ({
      id: `e${engine}`,
      replicas: [0, 1].map((replica) => ({ address: `10.0.${engine}.${replica}:8000`, ready: true })),
    })),
  });
}

function isReadable(bytes: Uint8Array): boolean {
  try {
    return decodeSnapshot(bytes).frontendId === 'west';
  } catch {
    return false;
  }
}
