import { expect, it } from 'vitest';
import { afterProbe, isSuspect, type ProbeResult, unknownHealth } from './replica-health.js';

const ok: ProbeResult = { ok: true };
const refused: ProbeResult = { ok: false, kind: 'refused', detail: 'connection refused' };
const unavailable: ProbeResult = { ok: false, kind: 'unavailable', detail: 'status 503' };
const unready: ProbeResult = { ok: false, kind: 'unready', detail: 'status 400' };
const broken: ProbeResult = { ok: false, kind: 'status', detail: 'status 500' };
const timeout: ProbeResult = { ok: false, kind: 'timeout', detail: 'no answer within 1000 ms' };

function after(results: readonly ProbeResult[], servesWell = false) {
  return results.reduce(
    (health, result, index) => afterProbe(health, result, servesWell, index),
    unknownHealth(0),
  );
}

it('a replica is down after two failures in a row and up after two good answers in a row', () => {
  expect(after([ok]).state).toBe('up');
  expect(after([ok, refused]).state).toBe('up');
  expect(after([ok, refused, ok, refused]).state).toBe('up');
  expect(after([ok, refused, refused])).toMatchObject({ state: 'down', detail: 'connection refused' });
  expect(after([ok, refused, refused, ok]).state).toBe('down');
  expect(after([ok, refused, refused, ok, refused, ok]).state).toBe('down');
  expect(after([ok, refused, refused, ok, ok])).toMatchObject({ state: 'up', detail: '' });
});

it('a replica that was never probed is taken for up until two probes fail', () => {
  expect(unknownHealth(0).state).toBe('unknown');
  expect(after([refused]).state).toBe('unknown');
  expect(after([refused, refused]).state).toBe('down');
});

it('a hanging health page does not take out an engine that serves well, a refused connection does', () => {
  expect(after([ok, timeout, timeout, timeout], true).state).toBe('up');
  expect(after([ok, timeout, timeout], false).state).toBe('down');
  expect(after([ok, refused, refused], true).state).toBe('down');
});

it('a health page of 503 for a second takes out an engine that serves well, as one that shuts down does; other errors do not', () => {
  const four = [unavailable, unavailable, unavailable, unavailable];
  expect(after([ok, ...four], true)).toMatchObject({ state: 'down', detail: 'status 503' });
  expect(after([ok, ...four.slice(1)], true).state).toBe('up');
  expect(after([ok, unavailable, unavailable]).state).toBe('down');
  expect(after([ok, broken, broken, broken, broken, broken], true).state).toBe('up');
});

it('400 of a health page that was good before counts as 503 does, as Triton says it; of one that never was good it says nothing', () => {
  const four = [unready, unready, unready, unready];
  expect(after([ok, ...four], true)).toMatchObject({ state: 'down', detail: 'status 400' });
  expect(after([ok, ...four.slice(1)], true).state).toBe('up');
  expect(after([ok, unready, unavailable, unready, unavailable], true).state).toBe('down');
  expect(after([...four, ...four], true).state).toBe('unknown');
  expect(after([unready, unready]).state).toBe('down');
});

it('a single 503 takes out no engine that serves well, however many errors of other kinds came before', () => {
  const late = Array<ProbeResult>(9).fill(timeout);
  expect(after([ok, ...late, unavailable], true).state).toBe('up');
  expect(after([ok, ...late, unavailable, broken, unavailable, broken, unavailable], true).state).toBe('up');
});

it('only a first failure is worth an immediate second look', () => {
  expect(isSuspect(after([ok, refused]))).toBe(true);
  expect(isSuspect(after([ok]))).toBe(false);
  expect(isSuspect(after([ok, timeout, timeout], true))).toBe(false);
  expect(isSuspect(after([refused, refused, ok]))).toBe(false);
});
