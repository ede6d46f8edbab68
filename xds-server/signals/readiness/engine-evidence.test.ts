import { expect, it } from 'vitest';
import { type EngineUsage, noEngineUsage } from '../../../wire/usage-report.js';
import { EngineEvidence } from './engine-evidence.js';

const usage = (served: number, failures: number): EngineUsage => ({
  ...noEngineUsage(1n, 2n),
  planned: served + failures,
  ended: served + failures,
  failures,
  status2xx: served,
});

it('an engine of which frontends see only failures is left out, longer each time in a row', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(0, 4), 1_000);
  expect(evidence.veto(1_000)).toBeUndefined();
  evidence.add(usage(0, 1), 2_000);
  expect(evidence.veto(2_000)).toEqual({ sinceMs: 2_000, untilMs: 12_000, failed: 5 });
  expect(evidence.veto(11_999)).toBeDefined();
  expect(evidence.veto(12_000)).toBeUndefined();
  evidence.add(usage(0, 5), 13_000);
  expect(evidence.veto(13_000)!.untilMs).toBe(33_000);
});

it('an answer ends the row of vetoes', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(0, 5), 1_000);
  expect(evidence.veto(1_000)!.untilMs).toBe(11_000);
  expect(evidence.veto(11_000)).toBeUndefined();
  evidence.add(usage(1, 0), 12_000);
  evidence.add(usage(0, 5), 20_000);
  expect(evidence.veto(20_000)!.untilMs).toBe(30_000);
});

it('an engine that answers some requests is left to the weights', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(1, 100), 1_000);
  expect(evidence.veto(1_000)).toBeUndefined();
  expect(evidence.servesWell(1_000)).toBe(false);
});

it('serving well needs recent answers and no failure', () => {
  const evidence = new EngineEvidence();
  expect(evidence.servesWell(1_000)).toBe(false);
  evidence.add(usage(3, 0), 1_000);
  expect(evidence.servesWell(1_500)).toBe(true);
  expect(evidence.servesWell(4_001)).toBe(false);
});

it('one answer is enough to doubt a health page that is only late, and none where requests fail', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(1, 0), 1_000);
  expect(evidence.servesWell(1_500)).toBe(false);
  expect(evidence.servesWell(1_500, true)).toBe(true);
  expect(evidence.servesWell(4_001, true)).toBe(false);
  evidence.add(usage(1, 1), 4_500);
  expect(evidence.servesWell(4_500, true)).toBe(false);
});
