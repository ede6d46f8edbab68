import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { Alarms } from '../alarms/alarms.js';
import { StateKeeper } from './state-keeper.js';

/** A state file whose writes end when they are told to. */
function world() {
  const clock = { nowMs: 1_000_000 };
  const writes: { end: () => void; fail: (error: Error) => void }[] = [];
  const save = () => new Promise<void>((end, fail) => writes.push({ end, fail }));
  const alarms = new Alarms(() => clock.nowMs, { warn: vi.fn(), info: vi.fn() });
  const keeper = new StateKeeper({
    file: { path: 'state.json', save, foundReplacedAtMs: undefined } as never,
    peers: { isAlone: true } as never,
    alarms,
    state: () => ({}) as never,
    now: () => clock.nowMs,
  });
  const look = (sinceMs: number) => {
    clock.nowMs += sinceMs;
    keeper.look();
    return alarms.list.map(({ message }) => message);
  };
  return { keeper, writes, alarms, look };
}

it('saves once a minute, and not while a write is under way', async () => {
  const { writes, look } = world();
  look(0);
  look(60_000);
  expect(writes).toHaveLength(1);
  writes[0]!.end();
  await nextTurn();
  look(0);
  expect(writes).toHaveLength(2);
  writes[1]!.end();
  await nextTurn();
  look(59_999);
  expect(writes).toHaveLength(2);
  look(1);
  expect(writes).toHaveLength(3);
});

it('a write that does not end within half a minute is an alarm until the last that waits has ended', async () => {
  const { keeper, writes, look } = world();
  const first = keeper.save();
  expect(look(29_000)).toEqual([]);
  const second = keeper.save();
  expect(look(1_000)).toEqual([
    expect.stringContaining('state.json cannot be written: its disk does not answer'),
  ]);
  writes[0]!.end();
  await first;
  expect(look(29_000)).toEqual([]);
  expect(look(1_000)).toHaveLength(1);
  writes[1]!.end();
  await second;
  expect(look(0)).toEqual([]);
});

it('a write that fails is an alarm until one is good', async () => {
  const { keeper, writes, look } = world();
  const failed = keeper.save();
  writes[0]!.fail(new Error('no room'));
  await failed;
  expect(look(0)).toEqual(['no room']);
  const good = keeper.save();
  writes[1]!.end();
  await good;
  expect(look(0)).toEqual([]);
});
