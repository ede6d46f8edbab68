import { expect, it } from 'vitest';
import { noEngineUsage } from '../../../wire/usage-report.js';
import { latencySamples } from './latency-evidence.js';

const mix = { uncachedPromptTokens: 100, outputTokens: 41 };
const profile = {
  id: 'p',
  work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 },
  ttft: { baseSeconds: 0.02, secondsPerUncachedPromptToken: 1e-4, queueSeconds: 0.01 },
  tbot: { baseSeconds: 0.01, kappa: 0.5 },
  maxFittedRho: 0.95,
};
const idle = { rho: 0, peakRho: 0, requests: 0, networkSeconds: 0.005, doneRho: 0, largest: mix };
const usage = {
  ...noEngineUsage(1n, 2n),
  firstTokenCount: 2,
  firstTokenSecondsSum: 0.1,
  wholeCount: 4,
  wholeSecondsSum: 2,
  paceTokens: 80,
  paceSecondsSum: 0.8,
};

it('streams, whole answers and token paces are each compared with what the profile says of them', () => {
  const samples = latencySamples(usage, idle, profile, mix, 7);
  expect(samples).toEqual([
    {
      atMs: 7,
      kind: 'firstToken',
      count: 2,
      observedSeconds: 0.05,
      expectedSeconds: expect.closeTo(0.035),
      mostSeconds: expect.closeTo(0.035),
      slowness: expect.closeTo(1.5),
    },
    {
      atMs: 7,
      kind: 'whole',
      count: 4,
      observedSeconds: 0.5,
      expectedSeconds: expect.closeTo(0.435),
      mostSeconds: expect.closeTo(0.435),
      slowness: expect.closeTo(1.151),
    },
    {
      atMs: 7,
      kind: 'pace',
      count: 2,
      observedSeconds: 0.01,
      expectedSeconds: 0.01,
      mostSeconds: expect.closeTo(0.01),
      slowness: 1,
    },
  ]);
});

it('a queue explains late answers, and a full batch a slow pace', () => {
  const busy = { ...idle, rho: 0.5, peakRho: 0.9, requests: 200 };
  const [firstToken, whole, pace] = latencySamples(usage, busy, profile, mix, 0);
  // 200 requests are two seconds of work, of which what a full engine holds is no queue.
  expect(firstToken!.mostSeconds).toBeGreaterThan(1);
  expect(whole!.mostSeconds).toBeGreaterThan(2);
  expect(pace!.mostSeconds).toBeGreaterThan(0.018);
  expect(pace!.mostSeconds).toBeLessThan(0.021);
  expect(firstToken!.expectedSeconds).toBeLessThan(0.05);
});

it('while caches fill, whole prompts explain late answers, and more work a slow pace', () => {
  const work = { ...profile.work, secondsPerUncachedPromptToken: 1e-4 };
  const filling = {
    ...idle,
    rho: 0.4,
    peakRho: 0.4,
    doneRho: 0.4,
    largest: { ...mix, uncachedPromptTokens: 300 },
  };
  const samples = [idle, filling].map((load) =>
    latencySamples(usage, { ...filling, largest: load.largest }, { ...profile, work }, mix, 0),
  );
  const [usual, cold] = samples.map(([firstToken, whole, pace]) => [firstToken!, whole!, pace!]);
  // 300 tokens more would be 20 ms, and twice as much work.
  const later = cold!.map(({ mostSeconds }, at) => mostSeconds - usual![at]!.mostSeconds);
  expect(later[0]).toBeGreaterThan(0.02);
  expect(later[1]).toBeGreaterThan(later[0]!);
  expect(later[2]).toBeGreaterThan(0.003);
  expect(cold!.map(({ expectedSeconds }) => expectedSeconds)).toEqual(
    usual!.map(({ expectedSeconds }) => expectedSeconds),
  );
  expect(usual![0]!.slowness).toBeGreaterThan(1.1);
  expect(cold![0]!.slowness).toBe(1);
});

it('nothing is said of what was not measured or the profile does not know', () => {
  expect(latencySamples(noEngineUsage(1n, 2n), idle, profile, mix, 0)).toEqual([]);
  const paceless = { ...profile, tbot: { baseSeconds: 0, kappa: 0 } };
  expect(latencySamples(usage, idle, paceless, mix, 0).map(({ kind }) => kind)).toEqual([
    'firstToken',
    'whole',
  ]);
});

it('a few milliseconds do not make an engine slow', () => {
  const quick = { ...usage, firstTokenSecondsSum: 2 * 0.039, paceSecondsSum: 80 * 0.0105 };
  const [firstToken, , pace] = latencySamples(quick, idle, profile, mix, 0);
  expect([firstToken!.slowness, pace!.slowness]).toEqual([1, 1]);
});
