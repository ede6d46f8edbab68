import { describe, expect, it } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { noEngineUsage, noVmUsage } from '../../wire/usage-report.js';
import { loadConfig } from '../config/load.js';
import { effectiveCapacity } from '../fleet/fleet-state.js';
import type { ProbeResult } from './readiness/replica-health.js';
import { Signals } from './signals.js';
import { configOf, readyOf, refused, reportOf } from './testing/one-model.js';

describe('Signals: readiness', () => {
  it('never empties a pool: the last replicas keep their readiness', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.evaluate(0);
    for (const [id, address] of [
      ['a', '10.0.0.1:80'],
      ['b', '10.0.0.2:80'],
    ] as const) {
      signals.acceptProbe(id, address, refused, 1_000);
      signals.acceptProbe(id, address, refused, 1_100);
      signals.evaluate(1_100);
    }
    expect(readyOf(signals, 2_000)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(2_000).heldPools).toEqual(['m']);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 3_000);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 3_500);
    expect(readyOf(signals, 3_500)).toEqual({ a: [true], b: [false] });
  });

  it('of a pool of which nobody was seen, the first that is seen again does not have to serve for all', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const late: ProbeResult = { ok: false, kind: 'timeout', detail: '' };
    const probe = (id: string, result: ProbeResult, nowMs: number) => {
      const address = id === 'a' ? '10.0.0.1:80' : '10.0.0.2:80';
      for (let time = 0; time < 2; time++) signals.acceptProbe(id, address, result, nowMs);
    };
    signals.evaluate(0);
    for (const id of ['a', 'b']) probe(id, late, 1_000);
    expect(readyOf(signals, 60_000)).toEqual({ a: [true], b: [true] });
    probe('a', { ok: true }, 60_100);
    expect(signals.evaluate(60_200).heldPools).toEqual([]);
    expect(readyOf(signals, 63_000)).toEqual({ a: [true], b: [true] });
    expect(readyOf(signals, 63_100)).toEqual({ a: [true], b: [false] });
    probe('b', { ok: true }, 64_000);
    expect(readyOf(signals, 64_000)).toEqual({ a: [true], b: [true] });
  });

  it('of a pool that is lost in different ways, one whose page says 503 stays, and not one that refuses connections', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const lose = (id: string, result: ProbeResult, nowMs: number) => {
      const address = id === 'a' ? '10.0.0.1:80' : '10.0.0.2:80';
      for (let time = 0; time < 2; time++) signals.acceptProbe(id, address, result, nowMs);
    };
    signals.evaluate(0);
    lose('a', { ok: false, kind: 'unavailable', detail: 'status 503' }, 1_000);
    expect(readyOf(signals, 60_000)).toEqual({ a: [false], b: [true] });
    lose('b', refused, 60_100);
    expect(readyOf(signals, 60_200)).toEqual({ a: [true], b: [false] });
  });

  it('of a pool that is lost, a replica that is only drained serves', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 0);
    signals.act({ action: 'drain', target: '10.0.0.1:80', by: 'me' }, 1_000);
    expect(readyOf(signals, 60_000)).toEqual({ a: [false], b: [true] });
    for (let time = 0; time < 2; time++) signals.acceptProbe('b', '10.0.0.2:80', refused, 60_100);
    expect(readyOf(signals, 60_200)).toEqual({ a: [true], b: [false] });
  });

  describe('an engine that is the last one of a pool', () => {
    /** Engine b alone serves n; m has a, too. */
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines:',
        '- {id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80]}',
        '- {id: b, region: r, models: [m, n], profile: p, endpoints: [10.0.0.2:80]}',
        'profiles: {p: {requestsPerSecond: 10}}',
      ].join('\n'),
    );
    const signals = () => new Signals(config, [], 0);
    const engineIdsOf = (view: ReturnType<Signals['evaluate']>) =>
      Object.fromEntries(view.state.fleet.pools.map(({ id, engineIds }) => [id, engineIds]));
    const probe = (to: Signals, id: string, result: ProbeResult, nowMs: number) => {
      const address = id === 'a' ? '10.0.0.1:80' : '10.0.0.2:80';
      for (let time = 0; time < 2; time++) to.acceptProbe(id, address, result, nowMs);
    };

    it('and lost is none of pools that have others, until it is back; both restart the clock of settled conditions', () => {
      const lost = signals();
      expect(engineIdsOf(lost.evaluate(0))).toEqual({ m: ['a', 'b'], n: ['b'] });
      probe(lost, 'b', refused, 60_000);
      const view = lost.evaluate(60_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.fleet.pools[0]!.lastResortIds).toEqual(['b']);
      expect(view.heldPools).toEqual(['n']);
      expect(readyOf(lost, 70_000)).toEqual({ a: [true], b: [true] });
      expect(lost.evaluate(70_000).state.settledSeconds).toBe(10);
      probe(lost, 'b', { ok: true }, 90_000);
      expect(engineIdsOf(lost.evaluate(90_000))).toEqual({ m: ['a', 'b'], n: ['b'] });
      expect(lost.evaluate(91_000).state.settledSeconds).toBe(1);
    });

    it('and lost stays in all of them when those have nobody else, either', () => {
      const lost = signals();
      lost.evaluate(0);
      for (const id of ['a', 'b']) probe(lost, id, refused, 60_000);
      expect(engineIdsOf(lost.evaluate(60_000))).toEqual({ m: ['a', 'b'], n: ['b'] });
      probe(lost, 'a', { ok: true }, 61_000);
      expect(engineIdsOf(lost.evaluate(61_000))).toEqual({ m: ['a'], n: ['b'] });
    });

    it('and drained is none of pools that have others', () => {
      const drained = signals();
      drained.act({ action: 'drain', target: 'b', overSeconds: 0, by: 'me' }, 1_000);
      const view = drained.evaluate(1_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.engines.map(({ drain }) => drain)).toEqual([1, 1]);
    });

    it('and lost leaves a drained one, which answers, the pools that both serve', () => {
      const both = signals();
      both.evaluate(0);
      both.act({ action: 'drain', target: 'a', overSeconds: 0, by: 'me' }, 1_000);
      probe(both, 'b', refused, 2_000);
      const view = both.evaluate(2_000);
      expect(engineIdsOf(view)).toEqual({ m: ['a'], n: ['b'] });
      expect(view.state.engines.map(effectiveCapacity)).toEqual([1, 1]);
    });
  });

  it('leaves out an engine that frontends only see failing although its health page is fine', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptReport('f', 'n', reportOf(0), 0);
    signals.acceptReport('f', 'n', reportOf(10, { a: { failures: 6 }, b: { status2xx: 4 } }), 1_000);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 1_000);
    expect(readyOf(signals, 1_000)).toEqual({ a: [false], b: [true] });
    expect([...signals.evaluate(1_000).vetoes.keys()]).toEqual(['a']);
    expect(readyOf(signals, 11_000)).toEqual({ a: [true], b: [true] });
  });

  it('failures of an engine that was down do not keep it out when it is back', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    signals.acceptReport('f', 'n', reportOf(0), 0);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 500);
    signals.acceptProbe('a', '10.0.0.1:80', refused, 600);
    signals.acceptReport('f', 'n', reportOf(10, { a: { failures: 6 } }), 1_000);
    expect(readyOf(signals, 1_000)).toEqual({ a: [false], b: [true] });
    expect(signals.evaluate(1_000).vetoes.size).toBe(0);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 1_500);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 2_000);
    expect(readyOf(signals, 2_000)).toEqual({ a: [true], b: [true] });
  });

  it('another health page that says 400 from the beginning takes out no engine that serves well', () => {
    const configAt = (path: string) =>
      loadConfig('/none/fleet.yaml', () =>
        [
          'frontends: [{id: f, region: r}]',
          'engines:',
          `- {id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80], healthPath: ${path}}`,
          '- {id: b, region: r, models: [m], profile: p, endpoints: [10.0.0.2:80]}',
          'profiles: {p: {requestsPerSecond: 10}}',
        ].join('\n'),
      );
    const signals = new Signals(configAt('/v2/health/ready'), [], 0);
    const unready: ProbeResult = { ok: false, kind: 'unready', detail: 'status 400' };
    const serve = (answers: number, nowMs: number) =>
      signals.acceptReport('f', 'n', reportOf(answers, { a: { status2xx: answers } }), nowMs);
    serve(0, 0);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 0);
    signals.reconfigure(configAt('/v2/halth/ready'), 500);
    serve(10, 1_000);
    for (let time = 0; time < 8; time++) signals.acceptProbe('a', '10.0.0.1:80', unready, 1_000);
    expect(readyOf(signals, 1_000).a).toEqual([true]);
    signals.acceptProbe('a', '10.0.0.1:80', { ok: true }, 1_000);
    for (let time = 0; time < 4; time++) signals.acceptProbe('a', '10.0.0.1:80', unready, 1_000);
    expect(readyOf(signals, 1_000).a).toEqual([false]);
  });

  it('drains engines and replicas, except the last ones of a pool', () => {
    const signals = new Signals(configOf(['a', 'b']), [], 0);
    const drain = (target: string) => signals.act({ action: 'drain', target, overSeconds: 0, by: 'me' }, 0);
    drain('a');
    expect(signals.evaluate(1_000).state.engines.map((engine) => engine.drain)).toEqual([0, 1]);
    drain('b');
    expect(signals.evaluate(2_000).state.engines.map((engine) => engine.drain)).toEqual([1, 1]);
    signals.act({ action: 'undrain', target: 'a', by: 'me' }, 3_000);
    signals.act({ action: 'undrain', target: 'b', by: 'me' }, 3_000);
    drain('10.0.0.2:80');
    expect(readyOf(signals, 4_000)).toEqual({ a: [true], b: [false] });
  });

  it('a stuck replica is not back when clients leave streams that had begun, but when streams come to their end', () => {
    const config = loadConfig('/none/fleet.yaml', () =>
      [
        'frontends: [{id: f, region: r}]',
        'engines: [{id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80, 10.0.0.2:80]}]',
        'profiles: {p: {requestsPerSecond: 10}}',
        'demand: {f: {requestsPerSecond: 10, promptTokens: 100, outputTokens: 20}}',
      ].join('\n'),
    );
    const signals = new Signals(config, [], 0);
    const [sent, ended] = [
      [20, 1],
      [0, 0],
    ];
    let [streams, sequence, nowMs] = [0, 0, 0];
    /** So many requests end, all of them streams, of which so many come to their end; as many are sent to who does not hang. */
    const tell = (ends: readonly [number, number], whole = ends[0] + ends[1], more = ends[0]) => {
      nowMs += 500;
      for (const replica of [0, 1]) ended[replica]! += ends[replica]!;
      sent[0]! += more;
      sent[1]! += ends[1];
      streams += whole;
      const all = ended[0]! + ended[1]!;
      const row = { ...noEngineUsage(id64('m'), id64('a')), planned: all, ended: all, firstTokenCount: all };
      const vm = {
        ...noVmUsage(1n, ++sequence),
        engines: [row],
        replicas: [0, 1].map((at) => ({
          ...{ engine: id64('a'), replica: id64(`10.0.0.${at + 1}:80`) },
          ...{ sent: sent[at]! + 1, ended: ended[at]! },
        })),
        latencies: [{ engine: id64('a'), firstTokens: [all], paces: [streams] }],
      };
      signals.acceptReport('f', 'n', { vms: [vm] }, nowMs);
      return [...signals.evaluate(nowMs).stuck.keys()];
    };
    while (nowMs < 60_000) expect(tell([5, 5])).toEqual([]);
    for (let time = 0; time < 12; time++) tell([0, 10], 10, 5);
    expect(tell([0, 10])).toEqual(['10.0.0.1:80']);
    expect(tell([4, 10], 10, 0)).toEqual(['10.0.0.1:80']);
    expect(tell([5, 10], 15, 0)).toEqual([]);
  });
});
