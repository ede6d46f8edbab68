import { describe, expect, it } from 'vitest';
import type { Config } from '../config/config.js';
import { loadConfig } from '../config/load.js';
import { Signals } from './signals.js';
import { configOf, ready, refused, reportOf, WITH_LATENCY } from './testing/one-model.js';

/** A minute of equal traffic to a and b; for the last quarter b takes ten times as long to begin its answers. */
function withSlowB(config: Config): Signals {
  const signals = new Signals(config, [], 0);
  const sums = { a: 0, b: 0 };
  for (let second = 0; second <= 60; second++) {
    sums.a += 5 * 0.1;
    sums.b += 5 * (second > 45 ? 1 : 0.1);
    const usage = (sum: number) => ({
      planned: second * 5,
      ended: second * 5,
      firstTokenCount: second * 5,
      firstTokenSecondsSum: sum,
    });
    const report = reportOf(second * 10, { a: usage(sums.a), b: usage(sums.b) });
    signals.acceptReport('f', 'n', report, second * 1_000);
    signals.evaluate(second * 1_000);
  }
  return signals;
}

describe('Signals: penalty', () => {
  it('judges no engine by what reports make good after a silence', () => {
    const signals = new Signals(configOf(['a', 'b'], { profile: WITH_LATENCY }), [], 0);
    let sum = 0;
    for (let second = 0; second <= 130; second++) {
      // Slow while nobody tells of it.
      sum += 5 * (second > 60 && second <= 120 ? 1 : 0.1);
      const usage = { planned: second * 5, ended: second * 5, firstTokenCount: second * 5 };
      const slow = { ...usage, firstTokenSecondsSum: sum };
      const usual = { ...usage, firstTokenSecondsSum: second * 5 * 0.1 };
      if (second <= 60 || second > 120)
        signals.acceptReport('f', 'n', reportOf(second * 10, { a: usual, b: slow }), second * 1_000);
      const { engines } = signals.evaluate(second * 1_000).state;
      expect(engines.map(({ latencyFactor }) => latencyFactor)).toEqual([1, 1]);
    }
  });

  describe('an engine that others gave their conversations to', () => {
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
        '- {id: b, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:80"]}',
        '- {id: c, region: r, models: [m], profile: p, endpoints: ["10.0.0.3:80"]}',
        'profiles: {p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, secondsPerUncachedPromptToken: 0.0002}, tbot: {}}}',
        'demand: {f: {requestsPerSecond: 8, promptTokens: 1000, uncachedPromptTokens: 100, outputTokens: 1}}',
      ].join('\n'),
    );
    const USUAL_SECONDS = 0.07;
    const WHOLE_PROMPT_SECONDS = 0.25;
    /** Severity of the penalty of b, each second since it gets 4 requests/s after `before` of them, with first tokens after so long. */
    const severities = (
      firstTokenSeconds: number,
      seconds: number,
      before = 1,
      isLost: (second: number) => boolean = () => false,
    ): number[] => {
      const signals = new Signals(config, [], 0);
      const sums = { a: { count: 0, seconds: 0 }, b: { count: 0, seconds: 0 } };
      const add = (id: 'a' | 'b', count: number, each: number) => {
        sums[id].count += count;
        sums[id].seconds += count * each;
        const { count: all, seconds: firstTokenSecondsSum } = sums[id];
        return { planned: all, ended: all, firstTokenCount: all, firstTokenSecondsSum };
      };
      return Array.from({ length: 60 + seconds }, (_, second) => {
        const a = add('a', 5, USUAL_SECONDS);
        const b = second < 60 ? add('b', before, USUAL_SECONDS) : add('b', 4, firstTokenSeconds);
        const probe = isLost(second) ? refused : ready;
        signals.acceptProbe('c', '10.0.0.3:80', probe, second * 1_000);
        signals.acceptReport('f', 'n', reportOf(a.planned + b.planned, { a, b }), second * 1_000);
        return signals.evaluate(second * 1_000).state.engines[1]!.latencyFactor;
      }).slice(60);
    };

    it('is not penalised for computing their whole prompts, unless that goes on', () => {
      const all = severities(WHOLE_PROMPT_SECONDS, 60);
      expect(all.slice(0, 30)).toEqual(Array.from({ length: 30 }, () => 1));
      expect(all.at(-1)).toBeGreaterThan(3);
    });

    it('is not penalised for it in the minute after one of them was lost, however little more it gets', () => {
      expect(severities(WHOLE_PROMPT_SECONDS, 10, 3).at(-1)).toBeGreaterThan(3);
      const isLost = (second: number) => second >= 60;
      expect(severities(WHOLE_PROMPT_SECONDS, 55, 3, isLost)).toEqual(Array.from({ length: 55 }, () => 1));
    });

    it('is penalised at once when it takes far longer than these explain', () => {
      expect(severities(3 * WHOLE_PROMPT_SECONDS, 10).at(-1)).toBeGreaterThan(2);
      const isLost = (second: number) => second >= 60;
      expect(severities(3 * WHOLE_PROMPT_SECONDS, 10, 3, isLost).at(-1)).toBeGreaterThan(2);
    });

    it('is not hidden for longer than five minutes by one that comes and goes', () => {
      const isLost = (second: number) => second >= 60 && Math.floor(second / 30) % 2 === 0;
      const all = severities(WHOLE_PROMPT_SECONDS, 360, 3, isLost);
      expect(all.slice(0, 290)).toEqual(Array.from({ length: 290 }, () => 1));
      for (const severity of all.slice(320)) expect(severity).toBeGreaterThan(3);
    });
  });

  it('penalises an engine that turns slow, in capacity and latency, and goes on with that after a restart', () => {
    const config = configOf(['a', 'b'], { profile: WITH_LATENCY });
    const signals = withSlowB(config);
    const [a, b] = signals.evaluate(61_000).state.engines;
    expect(a).toMatchObject({ penalty: 0, latencyFactor: 1 });
    expect(b!.latencyFactor).toBeGreaterThan(5);
    expect(b!.penalty).toBeCloseTo(1 - 1 / b!.latencyFactor);

    const restarted = new Signals(config, [], 70_000);
    restarted.resume(signals.operations, 70_000);
    expect(restarted.evaluate(70_000).state.engines[1]).toMatchObject({ latencyFactor: b!.latencyFactor });
    restarted.act({ action: 'release-penalty', target: 'b', by: 'me' }, 71_000);
    expect(restarted.evaluate(71_000).state.engines[1]).toMatchObject({ latencyFactor: 1, penalty: 0 });
  });

  it('takes an engine for as fast as it is, not as its profile says, and shows both', () => {
    const profile = (seconds: number) =>
      `{work: {secondsPerRequest: ${seconds}}, ttft: {baseSeconds: ${seconds}, queueSeconds: 0.01}, tbot: {}, maxFittedRho: 0.95}`;
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        ...['a', 'b', 'c'].map(
          (id, at) =>
            `- {id: ${id}, region: r, models: [m], profile: ${id === 'c' ? 'fast' : 'p'}, endpoints: [10.0.0.${at + 1}:80]}`,
        ),
        `profiles: {p: ${profile(0.3)}, fast: ${profile(0.1)}}`,
        'demand: {f: {requestsPerSecond: 3, promptTokens: 100, outputTokens: 1}}',
      ].join('\n'),
    );
    const signals = new Signals(config, [], 0);
    for (let second = 0; second <= 60; second++) {
      // Every engine takes 0.3 s; the profile of c says 0.1.
      const usage = {
        planned: second,
        ended: second,
        firstTokenCount: second,
        firstTokenSecondsSum: 0.3 * second,
      };
      signals.acceptReport('f', 'n', reportOf(3 * second, { a: usage, b: usage, c: usage }), second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const { state, outliers } = signals.evaluate(61_000);
    expect(state.engines.map(({ latencyFactor }) => Math.round(10 * latencyFactor) / 10)).toEqual([1, 1, 3]);
    expect(state.engines[2]!.penalty).toBeCloseTo(2 / 3, 1);
    expect(outliers[2]).toMatchObject({
      engineId: 'c',
      state: 'penalised',
      evidence: { observedSeconds: expect.closeTo(0.3, 2), expectedSeconds: expect.closeTo(0.1, 2) },
    });
  });

  it('only shows the penalty of a slow engine if the policy wants that, unless an operator puts it in force', () => {
    const signals = withSlowB(
      configOf(['a', 'b'], { policy: '{outlierPenalty: observe}', profile: WITH_LATENCY }),
    );
    const shown = signals.evaluate(61_000);
    expect(shown.outliers[1]).toMatchObject({ engineId: 'b', state: 'observed' });
    expect(shown.state.engines[1]).toMatchObject({ latencyFactor: 1, penalty: 0 });

    signals.act({ action: 'hold-penalty', target: 'b', by: 'me' }, 62_000);
    const held = signals.evaluate(62_000);
    expect(held.outliers[1]).toMatchObject({ state: 'penalised' });
    expect(held.state.engines[1]!.latencyFactor).toBeGreaterThan(5);
  });

  it('calls no engine slow whose profile knows only a rate', () => {
    const { outliers } = withSlowB(configOf(['a', 'b'])).evaluate(61_000);
    expect(outliers.map(({ state }) => state)).toEqual(['usual', 'usual']);
  });
});
