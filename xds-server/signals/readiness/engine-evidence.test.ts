import { describe, expect, it } from 'vitest';
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
  expect(evidence.veto(2_000)).toEqual({ sinceMs: 2_000, untilMs: 12_000, failed: 5, cutsShort: false });
  expect(evidence.veto(11_999)).toBeDefined();
  expect(evidence.veto(12_000)).toBeUndefined();
  evidence.add(usage(0, 5), 13_000);
  expect(evidence.veto(13_000)!.untilMs).toBe(33_000);
});

it('an engine that filters hardly try any more is left out when five in a row fail within half a minute', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(1, 0), 500);
  for (const [ms, failures] of [
    [1_000, 3],
    [5_000, 1],
  ] as const) {
    evidence.add(usage(0, failures), ms);
    expect(evidence.veto(ms)).toBeUndefined();
  }
  evidence.add(usage(1, 0), 9_000);
  evidence.add(usage(0, 1), 13_000);
  evidence.add(usage(0, 3), 20_000);
  expect(evidence.veto(20_000)).toBeUndefined();
  evidence.add(usage(0, 1), 42_999);
  expect(evidence.veto(42_999)).toMatchObject({ failed: 5 });
  const rare = new EngineEvidence();
  for (let ms = 0; ms < 600_000; ms += 10_000) {
    rare.add(usage(0, 1), ms);
    expect(rare.veto(ms)).toBeUndefined();
  }
});

it('an engine that is back is left out again at its first failure, until it has answered somebody', () => {
  const evidence = new EngineEvidence();
  evidence.add(usage(0, 5), 1_000);
  expect(evidence.veto(1_000)!.untilMs).toBe(11_000);
  evidence.add(usage(0, 1), 10_000);
  expect(evidence.veto(11_000)).toBeUndefined();
  evidence.add(usage(0, 1), 15_000);
  expect(evidence.veto(15_000)).toMatchObject({ untilMs: 35_000, failed: 1 });
  expect(evidence.veto(35_000)).toBeUndefined();
  evidence.add(usage(1, 0), 36_000);
  evidence.add(usage(0, 4), 40_000);
  expect(evidence.veto(40_000)).toBeUndefined();
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

describe('of an engine whose answers fail after they have begun', () => {
  /** So many begin; of those that end, so many break off, and so many end well. */
  const cut = (begun: number, broken: number, well = 0): EngineUsage => ({
    ...usage(begun, broken),
    broken,
    usageCount: well,
  });
  /** One that breaks off two answers a second, each a second after it has begun. */
  const breaking = (forMs: number, well = 0) => {
    const evidence = new EngineEvidence();
    evidence.add(cut(2, 0), 0);
    for (let ms = 1_000; ms <= forMs; ms += 500) {
      evidence.add(cut(1, 1, well), ms);
      if (ms < forMs) expect(evidence.veto(ms)).toBeUndefined();
    }
    return evidence;
  };

  it('it is left out when all do for 2 s, although it answers', () => {
    expect(breaking(3_000).veto(3_000)).toEqual({
      ...{ sinceMs: 3_000, untilMs: 13_000, failed: 5, cutsShort: true },
    });
  });

  it('it is left out as soon where it served well until it began, and no later where filters send it but a few', () => {
    const evidence = new EngineEvidence();
    for (let ms = 0; ms <= 1_000; ms += 100) evidence.add(cut(20, 0, 20), ms);
    evidence.add(cut(4, 4), 1_500);
    evidence.add(cut(1, 1), 2_600);
    expect(evidence.veto(2_600)).toBeUndefined();
    evidence.add(cut(1, 1), 20_000);
    expect(evidence.veto(20_000)).toMatchObject({ failed: 6, cutsShort: true });
  });

  it('it is left out also where the report of the first that fail tells of many that began before', () => {
    const evidence = new EngineEvidence();
    evidence.add(cut(100, 3), 1_000);
    evidence.add(cut(1, 1), 2_000);
    expect(evidence.veto(2_000)).toBeUndefined();
    evidence.add(cut(1, 1), 4_000);
    expect(evidence.veto(4_000)).toMatchObject({ failed: 5, cutsShort: true });
  });

  it('it is left out also where the report of the first that fail tells of some that ended well before', () => {
    const evidence = new EngineEvidence();
    evidence.add(cut(100, 5, 20), 1_000);
    evidence.add(cut(1, 1), 2_000);
    expect(evidence.veto(2_000)).toBeUndefined();
    evidence.add(cut(1, 1), 4_000);
    expect(evidence.veto(4_000)).toMatchObject({ failed: 7, cutsShort: true });
  });

  it('it is left to the weights while any comes to a good end', () => {
    expect(breaking(9_000, 1).veto(9_000)).toBeUndefined();
    const evidence = breaking(2_500);
    evidence.add({ ...noEngineUsage(1n, 2n), wholeCount: 1 }, 3_000);
    evidence.add(cut(5, 5), 3_500);
    expect(evidence.veto(3_500)).toBeUndefined();
  });

  it('nobody is left out whose connections were all reset at once, nor where clients leave', () => {
    const evidence = new EngineEvidence();
    for (let ms = 0; ms < 5_000; ms += 500) evidence.add(cut(10, 0), ms);
    evidence.add(cut(10, 100), 5_000);
    evidence.add(cut(10, 20), 5_500);
    expect(evidence.veto(5_500)).toBeUndefined();
    for (let ms = 6_000; ms < 30_000; ms += 500) evidence.add(cut(10, 0), ms);
    expect(evidence.veto(29_500)).toBeUndefined();
  });

  // Answers may take ten minutes, and of encoded streams no end is known.
  it('it is not left out again for one of many that have begun since it is back', () => {
    const evidence = breaking(3_000);
    evidence.veto(3_000);
    expect(evidence.veto(13_000)).toBeUndefined();
    for (let ms = 13_500; ms < 120_000; ms += 500) {
      evidence.add(cut(10, ms % 10_000 === 0 ? 1 : 0), ms);
      expect(evidence.veto(ms)).toBeUndefined();
    }
  });

  it('it is left out again for longer as soon as half of those that have begun fail, until one has come to a good end', () => {
    const evidence = breaking(3_000);
    evidence.veto(3_000);
    expect(evidence.veto(13_000)).toBeUndefined();
    evidence.add(cut(4, 0), 13_500);
    expect(evidence.veto(13_500)).toBeUndefined();
    evidence.add(cut(0, 1), 13_900);
    expect(evidence.veto(13_900)).toBeUndefined();
    evidence.add(cut(0, 1), 14_000);
    expect(evidence.veto(14_000)).toMatchObject({ untilMs: 34_000, failed: 2, cutsShort: true });
    expect(evidence.veto(34_000)).toBeUndefined();
    evidence.add(cut(0, 0, 1), 34_500);
    evidence.add(cut(4, 4), 46_000);
    expect(evidence.veto(46_000)).toBeUndefined();
    evidence.add(cut(4, 4), 48_000);
    expect(evidence.veto(48_000)!.untilMs).toBe(58_000);
  });
});
