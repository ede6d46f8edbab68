import { describe, expect, it } from 'vitest';
import { classify, trueTbot } from './stage.js';
import { engine, measure, sweep } from './synthetic.testing.js';

const uses = (observations: Parameters<typeof classify>[0]) => classify(observations).map(({ use }) => use);

describe('classify', () => {
  it('keeps steady stages for the curves and takes stages below 97 % of the offered rate as overload', () => {
    expect(uses(sweep())).toEqual([...Array(5).fill('curves'), 'overload', 'overload']);
    const stage = measure(engine, 0.5);
    expect(uses([{ ...stage, completedRps: 0.96 * stage.offeredRps }])).toEqual(['overload']);
    expect(uses([{ ...stage, completedRps: 0.98 * stage.offeredRps }])).toEqual(['curves']);
  });

  it('believes a file that flags overload', () => {
    expect(uses([{ ...measure(engine, 0.5), flaggedOverload: true }])).toEqual(['overload']);
  });

  it('does not take the drain of a short stage for overload', () => {
    const stage = measure(engine, 0.3);
    const sendSeconds = 20;
    const requests = stage.offeredRps * sendSeconds;
    const durationSeconds = sendSeconds + stage.e2eSeconds!;
    const drained = { ...stage, requests, durationSeconds, completedRps: requests / durationSeconds };
    expect(drained.completedRps).toBeLessThan(0.97 * drained.offeredRps);
    expect(uses([drained])).toEqual(['curves']);
  });

  it('sets aside stages that are shorter than two requests', () => {
    const stage = measure(engine, 0.3);
    expect(uses([{ ...stage, durationSeconds: 1.5 * stage.e2eSeconds! }])).toEqual(['too-short']);
  });

  it('takes unpaced stages, and paced ones held back by the limit of requests in flight, as closed loop', () => {
    const stage = measure(engine, 0.5);
    expect(uses([{ ...stage, offeredRps: Infinity }])).toEqual(['closed-loop']);
    const inFlight = stage.completedRps * stage.e2eSeconds!;
    expect(uses([{ ...stage, concurrencyLimit: inFlight }])).toEqual(['closed-loop']);
    expect(uses([{ ...stage, concurrencyLimit: 2 * inFlight }])).toEqual(['curves']);
  });
});

describe('trueTbot', () => {
  const stage = measure(engine, 0.5);
  const tbotSeconds = stage.reportedTbotSeconds!;

  it('keeps a reported value that agrees with the end-to-end time', () => {
    const reported = { ...stage, reportedTbotSeconds: 1.1 * tbotSeconds };
    expect(trueTbot(reported)).toEqual({ seconds: 1.1 * tbotSeconds, recomputed: false });
  });

  it('recomputes one that is half the truth', () => {
    const { seconds, recomputed } = trueTbot({ ...stage, reportedTbotSeconds: tbotSeconds / 2 });
    expect(recomputed).toBe(true);
    expect(seconds).toBeCloseTo(tbotSeconds, 12);
  });

  it('has nothing to compare with where the end-to-end time is unknown', () => {
    const halved = { ...stage, reportedTbotSeconds: tbotSeconds / 2, e2eSeconds: undefined };
    expect(trueTbot(halved)).toEqual({ seconds: tbotSeconds / 2, recomputed: false });
  });
});
