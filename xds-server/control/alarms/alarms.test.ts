import { expect, it, vi } from 'vitest';
import { Alarms } from './alarms.js';

it('an alarm keeps its beginning while its message changes, and is logged at beginning and end only', () => {
  let nowMs = 1_000;
  const log = { warn: vi.fn(), info: vi.fn() };
  const alarms = new Alarms(() => nowMs, log);
  alarms.raise('planning', 'first');
  nowMs = 2_000;
  alarms.raise('planning', 'second');
  expect(alarms.list).toEqual([{ id: 'planning', sinceMs: 1_000, message: 'second' }]);
  alarms.clear('planning');
  alarms.clear('planning');
  expect(alarms.list).toEqual([]);
  expect(log.warn).toHaveBeenCalledTimes(1);
  expect(log.info).toHaveBeenCalledTimes(1);
});

it('setting a kind ends the alarms of that kind that are not named, and no others', () => {
  const alarms = new Alarms(() => 0, { warn: vi.fn(), info: vi.fn() });
  alarms.raise('config', 'stays');
  alarms.set(
    'replica-down',
    new Map([
      ['[::1]:80', 'one'],
      ['10.0.0.1:80', 'two'],
    ]),
  );
  alarms.set('replica-down', new Map([['[::1]:80', 'one']]));
  expect(alarms.list.map(({ id }) => id)).toEqual(['config', 'replica-down:[::1]:80']);
});
