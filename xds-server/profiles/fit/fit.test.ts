import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tbotSeconds, ttftSeconds } from '../curves.js';
import type { Profile } from '../profile.js';
import { fitProfile } from './fit.js';
import type { Observation } from './observation.js';
import { engine, measure, sweep } from './synthetic.testing.js';

const codes = (observations: readonly Observation[]) =>
  fitProfile('x', observations).warnings.map(({ code }) => code);

const within = (share: number) => fc.double({ min: 1 - share, max: 1 + share, noNaN: true });
const engines = fc.record({
  capacityRps: fc.double({ min: 0.5, max: 500, noNaN: true }),
  ttft: fc.record({
    baseSeconds: fc.double({ min: 0.01, max: 2, noNaN: true }),
    queueSeconds: fc.double({ min: 0.0005, max: 0.5, noNaN: true }),
  }),
  tbot: fc.record({
    baseSeconds: fc.double({ min: 0.005, max: 0.1, noNaN: true }),
    kappa: fc.double({ min: 0.05, max: 0.9, noNaN: true }),
  }),
  promptTokens: fc.constant(600),
  outputTokens: fc.constant(150),
});

describe('fitProfile on a sweep of a known engine', () => {
  it('finds the parameters when nothing disturbs the measurement', () => {
    fc.assert(
      fc.property(engines, (truth) => {
        const { profile, warnings } = fitProfile('x', sweep(truth));
        expect(profile!.work.secondsPerRequest).toBeCloseTo(1 / truth.capacityRps, 8);
        expect(profile!.ttft.baseSeconds / truth.ttft.baseSeconds).toBeCloseTo(1, 5);
        expect(profile!.ttft.queueSeconds / truth.ttft.queueSeconds).toBeCloseTo(1, 3);
        expect(profile!.tbot.baseSeconds / truth.tbot.baseSeconds).toBeCloseTo(1, 6);
        expect(profile!.tbot.kappa).toBeCloseTo(truth.tbot.kappa, 6);
        expect(profile!.maxFittedRho).toBeCloseTo(0.9, 6);
        expect(warnings.map(({ code }) => code)).toEqual(['one-size']);
      }),
      { numRuns: 100 },
    );
  });

  // Half a percent of noise in the capacity alone moves rho / (1 - rho) by 5 % at rho = 0.9.
  it('stays within 10 % of the true TTFT and 5 % of the true TBOT under 2 % noise', () => {
    const noise = fc.record({ ttft: within(0.02), tbot: within(0.02), completed: within(0.005) });
    fc.assert(
      fc.property(engines, fc.array(noise, { minLength: 7, maxLength: 7 }), (truth, noises) => {
        const loads = [0.1, 0.3, 0.5, 0.7, 0.9, 1.2, 1.5];
        const observations = loads.map((load, i) => measure(truth, load, noises[i]));
        const { profile } = fitProfile('x', observations);
        for (const rho of [0.05, 0.2, 0.4, 0.6, 0.8, 0.88]) {
          const measured = measure(truth, rho);
          expect(Math.abs(ttftSeconds(profile!, rho, 600) / measured.ttftSeconds - 1)).toBeLessThan(0.1);
          expect(Math.abs(tbotSeconds(profile!, rho) / measured.reportedTbotSeconds! - 1)).toBeLessThan(0.05);
        }
      }),
      { numRuns: 100 },
    );
  });

  it('is not thrown off by one wild stage', () => {
    const [first, second, ...rest] = sweep();
    const { profile } = fitProfile('x', [
      first!,
      { ...second!, ttftSeconds: 5 * second!.ttftSeconds },
      ...rest,
    ]);
    expect(profile!.ttft.baseSeconds / engine.ttft.baseSeconds).toBeGreaterThan(0.9);
    expect(profile!.ttft.baseSeconds / engine.ttft.baseSeconds).toBeLessThan(1.1);
  });

  it('does not depend on the order of the stages', () => {
    const expected = JSON.stringify(fitProfile('x', sweep()));
    fc.assert(
      fc.property(fc.shuffledSubarray(sweep(), { minLength: 7 }), (shuffled) => {
        expect(JSON.stringify(fitProfile('x', shuffled))).toBe(expected);
      }),
      { numRuns: 20 },
    );
  });

  it('makes rho times the queueing delay convex whatever was measured', () => {
    const stage = fc.record({
      load: fc.integer({ min: 1, max: 95 }).map((percent) => percent / 100),
      ttft: fc.double({ min: 0.2, max: 20, noNaN: true }),
      tbot: fc.double({ min: 0.2, max: 5, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(stage, { minLength: 4, maxLength: 10 }), (stages) => {
        const below = stages.map(({ load, ttft, tbot }) => measure(engine, load, { ttft, tbot }));
        const { profile } = fitProfile('x', [...below, measure(engine, 1.2), measure(engine, 1.5)]);
        if (profile !== undefined) expectConvex(profile);
      }),
      { numRuns: 100 },
    );
  });
});

function expectConvex(profile: Profile): void {
  const load = (rho: number) => rho * (ttftSeconds(profile, rho, 600) + 149 * tbotSeconds(profile, rho));
  const step = 0.01;
  for (let rho = step; rho < 1; rho += step) {
    const bend = load(rho + step) - 2 * load(rho) + load(rho - step);
    expect(bend).toBeGreaterThanOrEqual(-1e-9 * load(rho));
  }
}

describe('fitProfile on data that do not carry a fit', () => {
  it('gives capacity but no profile from closed-loop stages', () => {
    const stages = [8, 16, 32, 64].map((concurrencyLimit) => ({
      ...measure(engine, Math.min(0.99, concurrencyLimit / 32)),
      offeredRps: Infinity,
      concurrencyLimit,
    }));
    const result = fitProfile('x', stages);
    expect(result.profile).toBeUndefined();
    expect(result.capacities[0]).toMatchObject({ saturated: true, saturatedStages: 1 });
    expect(result.capacities[0]!.requestsPerSecond).toBeCloseTo(0.99 * engine.capacityRps, 6);
    expect(codes(stages)).toEqual(expect.arrayContaining(['closed-loop', 'too-few-stages']));
  });

  it('takes an unpaced stage among paced ones for the capacity only', () => {
    const unpaced = { ...measure(engine, 1.5), offeredRps: Infinity };
    const { profile, warnings } = fitProfile('x', [...sweep().slice(0, 5), unpaced]);
    expect(profile!.work.secondsPerRequest).toBeCloseTo(1 / engine.capacityRps, 9);
    expect(warnings.map(({ code }) => code)).toContain('closed-loop');
  });

  it('gives no profile from fewer than three rates below capacity', () => {
    const result = fitProfile('x', [measure(engine, 0.2), measure(engine, 0.6), measure(engine, 1.2)]);
    expect(result.profile).toBeUndefined();
    expect(result.warnings.map(({ code }) => code)).toContain('too-few-stages');
  });

  it('says that three rates are few', () => {
    expect(codes([0.2, 0.5, 0.8, 1.2, 1.4].map((load) => measure(engine, load)))).toContain('too-few-stages');
  });

  it('calls the capacity of a run that never filled the engine a lower bound', () => {
    const result = fitProfile('x', sweep().slice(0, 5));
    expect(result.capacities[0]).toMatchObject({ saturated: false, interval: undefined });
    expect(result.capacities[0]!.requestsPerSecond).toBeCloseTo(0.9 * engine.capacityRps, 9);
    expect(result.profile!.maxFittedRho).toBeLessThan(1);
    expect(result.warnings.map(({ code }) => code)).toContain('unsaturated');
  });

  it('says that one saturated stage shows no spread', () => {
    expect(codes(sweep().slice(0, 6))).toContain('single-saturated-stage');
  });

  it('tells of throughput that collapses under overload', () => {
    expect(codes([...sweep(), measure(engine, 2, { completed: 0.7 })])).toContain('collapse');
  });

  it('tells of short stages', () => {
    expect(codes(sweep().map((stage) => ({ ...stage, durationSeconds: 15 })))).toContain('short-stages');
  });

  it('tells of time per token reported at half, and fits the true one', () => {
    const halved = sweep().map((stage) => ({
      ...stage,
      reportedTbotSeconds: stage.reportedTbotSeconds! / 2,
    }));
    const { profile, warnings } = fitProfile('x', halved);
    expect(profile!.tbot.baseSeconds).toBeCloseTo(engine.tbot.baseSeconds, 9);
    expect(warnings.map(({ code }) => code)).toContain('doubled-tbot');
  });

  it('tells of time per token that contradicts the end-to-end time in another way', () => {
    const found = codes(sweep().map((s) => ({ ...s, reportedTbotSeconds: s.reportedTbotSeconds! / 1.4 })));
    expect(found).toContain('contradictory-tbot');
    expect(found).not.toContain('doubled-tbot');
  });

  it('tells of stages that completed more than was offered, but not of chance', () => {
    const more = (factor: number, requests: number | undefined) =>
      codes(sweep().map((s) => ({ ...s, completedRps: factor * s.completedRps, requests })));
    expect(more(1.3, 6000)).toContain('contradictory-rates');
    expect(more(1.3, undefined)).toContain('contradictory-rates');
    expect(more(1.3, 100)).not.toContain('contradictory-rates');
    expect(more(1.1, 6000)).not.toContain('contradictory-rates');
  });

  it('tells of medians', () => {
    expect(codes(sweep().map((stage) => ({ ...stage, statistic: 'median' as const })))).toContain('medians');
  });

  it('tells of a sweep that stops far from capacity', () => {
    expect(codes([0.1, 0.2, 0.3, 0.4, 1.2, 1.5].map((load) => measure(engine, load)))).toContain(
      'narrow-range',
    );
  });

  it('tells of curves that miss the measurements, and of concave TTFT', () => {
    const concave = sweep().map((stage, index) => ({
      ...stage,
      ttftSeconds: [0.1, 0.17, 0.19, 0.2, 0.2, 30, 30][index]!,
      e2eSeconds: undefined,
    }));
    const { warnings } = fitProfile('x', concave);
    expect(warnings.find(({ code }) => code === 'ttft-misfit')?.message).toContain('concave');
    const jumping = sweep().map((stage, index) => ({
      ...stage,
      reportedTbotSeconds: [0.01, 0.01, 0.02, 0.01, 0.01, 0.01, 0.01][index]!,
      e2eSeconds: undefined,
    }));
    expect(codes(jumping)).toContain('tbot-misfit');
  });

  it('holds kappa below 1 when TBOT seems to diverge before capacity', () => {
    const steep = sweep().map((stage, index) => ({
      ...stage,
      reportedTbotSeconds: index < 5 ? 0.01 / (1 - 1.08 * [0.1, 0.3, 0.5, 0.7, 0.9][index]!) : 0.5,
      e2eSeconds: undefined,
    }));
    const { profile, warnings } = fitProfile('x', steep);
    expect(profile!.tbot.kappa).toBeLessThan(1);
    expect(warnings.map(({ code }) => code)).toContain('kappa-bound');
  });
});

describe('fitProfile on several request sizes', () => {
  const work = {
    secondsPerRequest: 0.004,
    secondsPerUncachedPromptToken: 2e-5,
    secondsPerOutputToken: 1e-4,
  };
  const sized = (promptTokens: number, outputTokens: number) =>
    sweep({
      ...engine,
      promptTokens,
      outputTokens,
      ttft: { baseSeconds: 0.02 + 3e-5 * promptTokens, queueSeconds: 0.004 },
      capacityRps: 1 / (0.004 + 2e-5 * promptTokens + 1e-4 * outputTokens),
    });

  it('tells prefill from decode, in work and in TTFT', () => {
    const { profile, warnings } = fitProfile('x', [
      ...sized(200, 50),
      ...sized(2000, 50),
      ...sized(200, 400),
      ...sized(4000, 200),
    ]);
    for (const name of Object.keys(work) as (keyof typeof work)[]) {
      expect(profile!.work[name] / work[name]).toBeCloseTo(1, 6);
    }
    expect(profile!.ttft.secondsPerUncachedPromptToken / 3e-5).toBeCloseTo(1, 4);
    expect(warnings).toEqual([]);
  });

  it('gives no profile when only one size was measured to the limit', () => {
    const result = fitProfile('x', [...sized(200, 50), ...sized(2000, 50).slice(0, 5)]);
    expect(result.work).toBeUndefined();
    expect(result.profile).toBeUndefined();
    expect(result.warnings.map(({ code }) => code)).toContain('unsaturated');
  });

  it('tells of capacities that are not linear in tokens', () => {
    const odd = sized(1000, 50).map((stage) => ({
      ...stage,
      offeredRps: stage.offeredRps / 2,
      completedRps: stage.completedRps / 2,
    }));
    expect(codes([...sized(200, 50), ...odd, ...sized(4000, 50)])).toContain('work-misfit');
  });
});
