import { describe, expect, it } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { effectiveCapacity } from '../fleet/fleet-state.js';
import { Signals } from './signals.js';
import { configOf, reportOf, WITH_LATENCY } from './testing/one-model.js';
import { LoadCounts } from './usage/load-counts.js';

describe('Signals: capacity', () => {
  it('knows a metrics page to stand still by the answers that Envoys see, and forgets the work from elsewhere that it showed', () => {
    const config = configOf(['a'], { profile: WITH_LATENCY });
    const signals = new Signals(config, [], 0);
    const engine = config.fleet.engines[0]!;
    const address = engine.endpoints[0]!;
    const standing: number[] = [];
    for (let second = 0; second <= 60; second++) {
      const atMs = second * 1_000;
      const ended = 10 * second;
      const { vms } = reportOf(ended, { a: { planned: ended + 2, ended, wholeCount: ended } });
      const replicas = [{ engine: id64('a'), replica: id64(address), sent: ended + 2, ended }];
      signals.acceptReport('f', 'n', { vms: [{ ...vms[0]!, replicas }] }, atMs);
      if (second % 2 === 1) continue;
      // It grows for half a minute, and then says for good that the engine has many requests.
      const sinceMs = signals.acceptPage('a', address, 100 * Math.min(second, 30), atMs);
      if (sinceMs !== undefined) standing.push(second, sinceMs);
      else signals.acceptLoad(engine, second < 30 ? 2 : 12, 1, atMs);
    }
    expect(standing.slice(0, 2)).toEqual([38, 30_000]);
    expect(signals.evaluate(60_000).state.engines[0]!.health).toBe(1);
  });

  it('takes work that an engine gets from elsewhere off its capacity, and holds that while nothing is known', () => {
    const config = configOf(['a', 'b']);
    const signals = new Signals(config, [], 0);
    const [engine] = config.fleet.engines;
    const report = (second: number) =>
      reportOf(second * 5, { a: { planned: second * 5, ended: Math.max(0, second * 5 - 10) } });
    for (let second = 0; second <= 40; second++) {
      signals.acceptReport('f', 'n', report(second), second * 1_000);
      // Twenty requests there, ten of them ours, which are half of what the engine can serve.
      if (second >= 20 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
    }
    expect(signals.evaluate(40_000).state.engines.map(({ health }) => health)).toEqual([0.5, 1]);
    signals.acceptLoad(engine!, 0, 1, 50_000);
    const held = signals.evaluate(50_000);
    expect(held.state.engines[0]!.health).toBe(0.5);
    expect(held.outside.get('a')).toMatchObject({ requests: 10 });
  });

  it.each([
    ['observed', '{mode: observe}'],
    ['half observed', '{steerPercent: 50}'],
    ['native', '{}\nsteering: native'],
  ])(
    'takes no requests for work from elsewhere of which the engine is learnt with the response: %s',
    (_, policy) => {
      const config = configOf(['a', 'b'], { policy, profile: WITH_LATENCY });
      const signals = new Signals(config, [], 0);
      for (let second = 0; second <= 40; second++) {
        // They wait for an answer and are counted nowhere until it comes.
        signals.acceptReport('f', 'n', reportOf(second * 5), second * 1_000);
        if (second % 2 === 0) signals.acceptLoad(config.fleet.engines[0]!, 20, 1, second * 1_000);
      }
      expect(signals.evaluate(40_000).state.engines[0]!.health).toBe(1);
    },
  );

  it('takes nothing for work from elsewhere while Envoys may call a control server that is not heard', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const [engine] = configOf(['a', 'b']).fleet.engines;
    const healthAfter = (fromSecond: number, toSecond: number) => {
      for (let second = fromSecond; second <= toSecond; second++) {
        const counts = { planned: second * 5, ended: Math.max(0, second * 5 - 10) };
        signals.acceptReport('f', 'n', reportOf(second * 5, { a: counts }), second * 1_000);
        if (second >= 20 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
      }
      return signals.evaluate(toSecond * 1_000).state.engines[0]!.health;
    };
    signals.notePartial(true, 0);
    expect(healthAfter(0, 40)).toBe(1);
    signals.notePartial(false, 40_000);
    expect(healthAfter(41, 80)).toBe(0.5);
  });

  it('takes no requests of a silent frontend for work from elsewhere, as its demand is held', () => {
    const config = configOf(['a', 'b'], { frontendIds: ['f', 'g'] });
    const signals = new Signals(config, [], 0);
    const [engine] = config.fleet.engines;
    for (let second = 0; second <= 120; second++) {
      const counts = { planned: second * 5, ended: Math.max(0, second * 5 - 10) };
      signals.acceptReport('f', 'n', reportOf(second * 5, { a: counts }), second * 1_000);
      if (second <= 20) signals.acceptReport('g', 'o', reportOf(second * 5, { a: counts }), second * 1_000);
      // Ten of each, all the time.
      if (second >= 10 && second % 2 === 0) signals.acceptLoad(engine!, 20, 1, second * 1_000);
      signals.evaluate(second * 1_000);
    }
    const { state, silentFrontends } = signals.evaluate(120_000);
    expect(silentFrontends).toEqual([{ frontendId: 'g', silentSeconds: 100 }]);
    expect(state.demands.map(({ frontendId }) => frontendId)).toEqual(['f', 'g']);
    expect(state.engines[0]!.health).toBe(1);
  });

  it('plans an engine that is full before its profile says so with what it gets done, until it is told otherwise', () => {
    const config = configOf(['a', 'b'], { rps: 20, profile: WITH_LATENCY });
    const signals = new Signals(config, [], 0);
    const run = (to: number, from: number) => {
      for (let second = from; second <= to; second++) {
        const answered = { wholeCount: second * 7, ended: second * 7 };
        const usage = { ...answered, planned: second * 7 + Math.min(100, 10 * second) };
        signals.acceptReport('f', 'n', reportOf(second * 10, { b: usage }), second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(to * 1_000);
    };
    const view = run(110, 0);
    expect(view.state.engines.map(({ health }) => health)).toEqual([1, expect.closeTo(0.7)]);
    const corrected = view.capacities.filter(({ state }) => state === 'corrected');
    expect(corrected).toMatchObject([{ engineId: 'b', endsWhen: expect.anything() }]);
    expect(view.drifts).toMatchObject([{ profileId: 'p', kind: 'work' }]);

    const restarted = new Signals(config, [], 120_000);
    restarted.resume(signals.operations, 120_000);
    expect(restarted.evaluate(120_000).state.engines[1]!.health).toBeCloseTo(0.7);

    const slower = WITH_LATENCY.replace('secondsPerRequest: 0.1', 'secondsPerRequest: 0.14');
    const refitted = new Signals(configOf(['a', 'b'], { rps: 20, profile: slower }), [], 120_000);
    refitted.resume(signals.operations, 120_000);
    expect(refitted.evaluate(120_000).state.engines[1]!.health).toBe(1);

    const observed = new Signals(
      configOf(['a', 'b'], { rps: 20, policy: '{outlierPenalty: observe}', profile: WITH_LATENCY }),
      [],
      0,
    );
    observed.resume(signals.operations, 120_000);
    expect(observed.evaluate(120_000).state.engines[1]!.health).toBe(1);
    const shown = observed.evaluate(121_000).capacities.filter(({ sinceMs }) => sinceMs !== null);
    expect(shown).toMatchObject([{ engineId: 'b', state: 'observed' }]);

    signals.act({ action: 'release-penalty', target: 'b', by: 'me' }, 110_000);
    expect(run(130, 111).state.engines[1]!.health).toBe(1);
  });

  it('takes what Envoys count of answers for what a full engine gets done where no filter tells', () => {
    const shareAt = (doneRps: number) => {
      const signals = new Signals(configOf(['a', 'b'], { profile: WITH_LATENCY }), [], 0);
      const counts = new LoadCounts(1n);
      for (let second = 0; second <= 110; second++) {
        const full = second === 0 ? { issued: 60, succeeded: 0 } : { issued: doneRps, succeeded: doneRps };
        const engines = [{ engineId: 'b', ...full, failed: 0, inProgress: 60 }];
        const report = counts.add([{ poolId: 'm', dropped: 0, engines }]);
        signals.acceptLoadReport('f', 'n', report, second * 1_000);
        signals.evaluate(second * 1_000);
      }
      return signals.evaluate(110_000).state.engines[1]!.health;
    };
    expect(shareAt(10)).toBe(1);
    expect(shareAt(7)).toBeCloseTo(0.7);
  });

  it('takes up no correction of an engine that is not configured any more', () => {
    const signals = new Signals(configOf(['a']), [], 0);
    const gone = { engineId: 'b', share: 0.7, sinceMs: 0 };
    signals.resume({ ...signals.operations, capacities: [gone, { ...gone, engineId: 'a' }] }, 0);
    expect(signals.evaluate(0).capacities.map(({ engineId }) => engineId)).toEqual(['a']);
    expect(signals.operations.capacities).toMatchObject([{ engineId: 'a', share: 0.7 }]);
  });

  it('gives an engine that is healthy before it can serve little until it serves, and then its share step by step', () => {
    const profile = WITH_LATENCY;
    const signals = new Signals(configOf(['a', 'b'], { rps: 12, profile }), [], 0);
    const joinsAt = 60;
    const servesAt = joinsAt + 90;
    const sent = { a: 0, b: 0, c: 0 };
    const shares: number[] = [];
    for (let second = 0; second <= servesAt + 90; second++) {
      if (second === joinsAt)
        signals.reconfigure(configOf(['a', 'b', 'c'], { rps: 12, profile }), second * 1_000);
      const { engines } = signals.evaluate(second * 1_000).state;
      const capacities = engines.map((engine) => effectiveCapacity(engine));
      const total = capacities.reduce((sum, capacity) => sum + capacity, 0);
      shares.push((capacities[2] ?? 0) / total);
      for (const [at, { id }] of engines.entries()) {
        sent[id as 'a'] += (12 * capacities[at]!) / total;
      }
      const usage = (planned: number, ended: number) => ({
        planned,
        ended,
        status2xx: ended,
        firstTokenCount: ended,
        firstTokenSecondsSum: 0.06 * ended,
      });
      const whole = { a: Math.round(sent.a), b: Math.round(sent.b), c: Math.round(sent.c) };
      signals.acceptReport(
        'f',
        'n',
        reportOf(12 * second, {
          a: usage(whole.a, whole.a),
          b: usage(whole.b, whole.b),
          c: usage(whole.c, second < servesAt ? 0 : whole.c),
        }),
        second * 1_000,
      );
    }
    const fair = 1 / 3;
    const hung = shares.slice(joinsAt + 10, servesAt);
    expect(Math.max(...hung)).toBeLessThan(fair / 5);
    // Enough to see that it serves at last.
    expect(Math.min(...hung)).toBeGreaterThan(0.02);
    const later = shares.slice(servesAt);
    for (const [at, share] of later.slice(1).entries()) expect(share).toBeLessThan(2.1 * later[at]!);
    for (const share of later.slice(30)) expect(share).toBeCloseTo(fair, 2);
  });
});
