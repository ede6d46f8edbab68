import { expect } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { keyHash, partitionPoint, secondHash } from '../../wire/hash.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { deliver, engineOf, sketch } from './snapshots.js';

// New conversations and later turns, and where they begin.

const module = filterModule();

/** Of an Envoy that places new conversations. */
export const config = { frontendId: 'west', readBodies: true, placement: true };
export const FIRST = '{"messages":[{"role":"user","content":"hi"}]}';
export const LATER = '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"hello"}]}';
export const keys = Array.from({ length: 3_000 }, (_, index) => `conversation-${index}`);
export const twoEngines = sketch([{ weight: 1 }, { weight: 1 }]);

export function started(view: SnapshotView, host = new Host(module)): Vm {
  const vm = host.startVm(config);
  deliver(vm, view);
  return vm;
}

export function send(vm: Vm, key: string | undefined, body: string): Stream {
  return vm.request(key === undefined ? {} : { 'x-session-id': key }).send(body, true);
}

/** Engine and reason of a request that is answered at once. */
export function answered(stream: Stream): { engine: number; reason: string | undefined } {
  const reason = stream.respond(200).decision.reason;
  stream.end();
  return { engine: engineOf(stream.endpoints[0]), reason };
}

/** Engines that own the two points of a key. */
export function ownersOf(view: SnapshotView, key: string): [home: number, other: number] {
  const hash = keyHash(view.salt, '', key);
  const owner = (point: number) => view.pools[0]!.segments.findLast(({ start }) => start <= point)!.owner;
  return [owner(partitionPoint(hash)), owner(partitionPoint(secondHash(hash)))];
}

export function keysOf(view: SnapshotView, home: number, other: number): string[] {
  return keys.filter((key) => {
    const owners = ownersOf(view, key);
    return owners[0] === home && owners[1] === other;
  });
}

/** Keeps requests of conversations that go on under way at an engine. */
export function occupy(vm: Vm, view: SnapshotView, engine: number, count: number): Stream[] {
  return keysOf(view, engine, engine)
    .slice(-count)
    .map((key) => send(vm, key, LATER));
}

/** A VM whose first engine is busy, and a conversation that has begun at the second instead. */
export function displaced(vm = started(twoEngines)) {
  const busy = occupy(vm, twoEngines, 0, 10);
  const [key, another] = keysOf(twoEngines, 0, 1) as [string, string];
  expect(answered(send(vm, key, FIRST))).toEqual({ engine: 1, reason: 'placed' });
  for (const stream of busy) stream.respond(200).end();
  return { vm, key, another };
}
