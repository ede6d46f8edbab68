import { expect, it, vi } from 'vitest';
import { Alarms } from './alarms.js';
import { Faults } from './faults.js';

function world() {
  const clock = { nowMs: 0 };
  const alarms = new Alarms(() => clock.nowMs, { warn: vi.fn(), info: vi.fn() });
  const log = { error: vi.fn() };
  return { clock, alarms, log, faults: new Faults(alarms, log, () => clock.nowMs) };
}

const fail = () => {
  throw new RangeError('Invalid time value');
};

it('what throws raises an alarm of its part, and the log says where once a minute', () => {
  const { clock, alarms, log, faults } = world();
  for (; clock.nowMs <= 60_000; clock.nowMs += 200) faults.attempt('alarms', fail);
  expect(alarms.list).toMatchObject([
    { id: 'fault:alarms', sinceMs: 0, message: expect.stringContaining('in its alarms: Invalid time value') },
  ]);
  expect(log.error).toHaveBeenCalledTimes(2);
  expect(log.error.mock.calls[0]![0]).toMatchObject({ part: 'alarms', err: { stack: expect.any(String) } });
});

it('the alarm ends when the part has not failed for a minute, and no other ends', () => {
  const { clock, alarms, faults } = world();
  faults.attempt('alarms', fail);
  clock.nowMs = 30_000;
  faults.note('relief', 'text');
  clock.nowMs = 59_999;
  faults.look();
  expect(alarms.list.map(({ id }) => id)).toEqual(['fault:alarms', 'fault:relief']);
  clock.nowMs = 60_000;
  faults.look();
  expect(alarms.list.map(({ id }) => id)).toEqual(['fault:relief']);
});
