import { describe, expect, it } from 'vitest';
import { loadConfig } from '../config/load.js';
import { type KnownConfig, knownOf } from './known-config.js';
import { Signals } from './signals.js';
import { configOf, reportOf, WITH_LATENCY } from './testing/one-model.js';
import { unheardEngines } from './unheard-engines.js';

/** Ten requests per second of each replica; `both` serves two models. */
const known: KnownConfig = knownOf(
  loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}, {id: g, region: r}]',
      'engines:',
      '- {id: only-m, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
      '- {id: both, region: r, models: [m, n], profile: p, endpoints: ["10.0.0.2:80"]}',
      '- {id: only-n, region: r, models: [n], profile: p, endpoints: ["10.0.0.3:80"]}',
      'profiles: {p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.1}, tbot: {}}}',
      'demand: {f: {models: {m: {requestsPerSecond: 1, promptTokens: 100, outputTokens: 1}}}}',
    ].join('\n'),
  ),
);
const full = new Map(known.fleet.engines.map(({ id }) => [id, 1]));

interface Silence {
  readonly silentSeconds?: number;
  /** Requests per second of each silent frontend for the model `m`. */
  readonly rates?: Readonly<Record<string, number>>;
  readonly reaches?: (engineId: string) => boolean;
  readonly capacities?: ReadonlyMap<string, number>;
}

function unheard({ silentSeconds = 60, rates = { f: 5 }, reaches = () => true, ...rest }: Silence): string[] {
  const silent = Object.keys(rates).map((frontendId) => ({ frontendId, silentSeconds }));
  const senders = {
    ratesByPool: (frontendId: string) => new Map([['m', rates[frontendId]!]]),
    isReachable: (_: string, engineId: string) => reaches(engineId),
  };
  return [...unheardEngines(silent, senders, known, rest.capacities ?? full)].sort();
}

describe('engines with work that nobody tells of', () => {
  it('are those of the pools that a silent frontend asks, where it can reach them', () => {
    expect(unheard({})).toEqual(['both', 'only-m']);
    expect(unheard({ reaches: (id) => id !== 'both' })).toEqual(['only-m']);
  });

  it('are none where all that silent frontends ask is a little of what an engine can do', () => {
    expect(unheard({ rates: { f: 0.3 } })).toEqual([]);
    expect(unheard({ rates: { f: 0.3, g: 0.3 } })).toEqual(['both', 'only-m']);
    expect(unheard({ rates: { f: 0.3 }, capacities: new Map([...full, ['both', 0.5]]) })).toEqual(['both']);
    expect(unheard({ rates: { f: 0 } })).toEqual([]);
  });

  it('are none after an hour: who is silent for so long is gone', () => {
    expect(unheard({ silentSeconds: 3_599 })).toEqual(['both', 'only-m']);
    expect(unheard({ silentSeconds: 3_601 })).toEqual([]);
  });
});

describe('Signals: while a frontend is silent', () => {
  /** Severity of the penalty of b, slow for the last half minute, when g has asked for so much in the first one and is silent since. */
  function severityOfB(gRequestsPerSecond: number, seconds: number): number {
    const config = configOf(['a', 'b'], { profile: WITH_LATENCY, frontendIds: ['f', 'g'] });
    const signals = new Signals(config, [], 0);
    let slowSum = 0;
    for (let second = 0; second <= seconds; second++) {
      slowSum += 5 * (second > seconds - 30 ? 1 : 0.1);
      const count = second * 5;
      const usage = { planned: count, ended: count, firstTokenCount: count };
      const engines = {
        a: { ...usage, firstTokenSecondsSum: count * 0.1 },
        b: { ...usage, firstTokenSecondsSum: slowSum },
      };
      signals.acceptReport('f', 'n', reportOf(2 * count, engines), second * 1_000);
      const asked = reportOf(Math.floor(gRequestsPerSecond * second));
      if (second <= 60) signals.acceptReport('g', 'o', asked, second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const { state, silentFrontends } = signals.evaluate(seconds * 1_000);
    expect(silentFrontends.map(({ frontendId }) => frontendId)).toEqual(['g']);
    return state.engines[1]!.latencyFactor;
  }

  it('an engine that turns slow gets no penalty if that frontend may send it much', () => {
    expect(severityOfB(4, 150)).toBe(1);
  });

  it('it gets one if that frontend asks for hardly anything, or has been silent for more than an hour', () => {
    expect(severityOfB(0.4, 150)).toBeGreaterThan(5);
    expect(severityOfB(4, 3_720)).toBeGreaterThan(5);
  });
});
