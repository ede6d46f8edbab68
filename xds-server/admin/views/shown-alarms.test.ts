import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packageFile } from '../../package-file.js';
import { alarmMeanings } from './runbook.js';
import { shownAlarms, URGENT_KINDS } from './shown-alarms.js';

const manual = readFileSync(packageFile('docs', 'operations.md'), 'utf8');

it('shows what harms requests before what does not, each sorted as it was', () => {
  const alarms = ['capacity:a', 'penalty:b', 'pool-lost:m', 'replica-down:10.0.0.1:80', 'shedding:w/m'];
  const { shown } = shownAlarms(alarms.map((id) => ({ id, sinceMs: 0, message: '' })));
  expect(shown.map(({ id }) => id)).toEqual([
    ...['pool-lost:m', 'shedding:w/m'],
    ...['capacity:a', 'penalty:b', 'replica-down:10.0.0.1:80'],
  ]);
});

it('takes for urgent what the manual gives to Prometheus as such', () => {
  const [, kinds] = manual.match(/WardropUrgent.*kind=~'([^']*)'/)!;
  expect(kinds!.split('|')).toEqual([...URGENT_KINDS]);
  expect(alarmMeanings(manual).map(([kind]) => kind)).toEqual(expect.arrayContaining([...URGENT_KINDS]));
});
