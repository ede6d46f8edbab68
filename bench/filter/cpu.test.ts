import { expect, it } from 'vitest';
import { cpuNs, runningNs, ticks } from './cpu.js';

it('CPU time is read from schedstat, and from stat whatever the name of the process', () => {
  expect(runningNs('69724123 49655 2\n')).toBe(69724123);
  const stat = '14 (a) b (c) R 1 14 9321 0 -1 4194304 101 0 0 0 250 17 0 0 20 0 1 0 11309 3133440 381';
  expect(ticks(stat)).toBe(267);
});

it('a process that works uses CPU', () => {
  const before = cpuNs(process.pid);
  let sum = 0;
  for (let i = 0; i < 2e7; i++) sum += i % 7;
  expect(sum).toBeGreaterThan(0);
  expect(cpuNs(process.pid)).toBeGreaterThan(before);
});
