import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id64 } from '../../../wire/hash.js';
import { noEngineUsage, noPoolUsage, noVmUsage, type UsageReport } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import { Signals } from '../../signals/signals.js';
import { type RecordedSignal, RecordedSignals } from './recorded-signals.js';
import { Recorders } from './recorders.js';
import type { Recorded } from './recording.js';
import { RecordingReader } from './recording-reader.js';
import { RecordingWriter } from './recording-writer.js';
import { SignalsReplay } from './signals-replay.js';

function configOf(rps: number) {
  return loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}, {id: g, region: r}]',
      'engines:',
      '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
      '- {id: b, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:80", "10.0.0.3:80"]}',
      'network: {rttMs: {f: {a: 1, b: 7}, g: {a: 3, b: null}}}',
      'server: {token: secret-of-the-server}',
      'profiles: {p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, queueSeconds: 0.01}, tbot: {baseSeconds: 0.01, kappa: 0.5}, maxFittedRho: 0.95}}',
      `demand: {f: {requestsPerSecond: ${rps}}, g: {requestsPerSecond: 2.5}}`,
    ].join('\n'),
  );
}

const rates = [3, 6];
const configs = rates.map(configOf);

/** A report of a node that has served so many requests, with answers of these seconds. */
function reportOf(sequence: number, requests: number, seconds: number): UsageReport {
  const usage = {
    planned: requests,
    ended: requests,
    status2xx: requests,
    firstTokenCount: requests,
    firstTokenSecondsSum: requests * seconds,
  };
  const engines = [{ ...noEngineUsage(id64('m'), id64('b')), ...usage }];
  const pools = [{ ...noPoolUsage(id64('m')), offered: requests }];
  return { vms: [{ ...noVmUsage(1n, sequence), pools, engines }] };
}

type Step = (signals: Signals, atMs: number, sequence: number) => void;

const frontend = fc.constantFrom('f', 'g');
const engine = fc.constantFrom(...configs[0]!.fleet.engines);
const report = fc.tuple(frontend, fc.nat(2), fc.double({ min: 0.01, max: 3, noNaN: true }));
const step: fc.Arbitrary<Step> = fc.oneof(
  report.map(([id, node, seconds]): Step => {
    return (signals, atMs, sequence) =>
      signals.acceptReport(id, `n${node}`, reportOf(sequence, sequence * 10, seconds), atMs);
  }),
  report.map(([id, node, seconds]): Step => {
    return (signals, atMs, sequence) =>
      signals.acceptLoadReport(id, `n${node}`, reportOf(sequence, sequence * 10, seconds), atMs);
  }),
  fc.tuple(engine, fc.boolean()).map(([{ id, endpoints }, ok]): Step => {
    const result = ok ? ({ ok } as const) : ({ ok, kind: 'refused', detail: 'refused' } as const);
    return (signals, atMs) => signals.acceptProbe(id, endpoints[0]!, result, atMs);
  }),
  fc.tuple(engine, fc.option(fc.nat(2), { nil: undefined })).map(([{ id, endpoints }, generated]): Step => {
    return (signals, atMs) => signals.acceptPage(id, endpoints[0]!, generated, atMs);
  }),
  fc.tuple(engine, fc.nat(40), fc.option(fc.nat(9), { nil: undefined })).map((load): Step => {
    const [which, requests, leastWaiting] = load;
    return (signals, atMs) => signals.acceptLoad(which, requests, which.endpoints.length, atMs, leastWaiting);
  }),
  fc.constant((signals, atMs) => signals.noteHoldUp(atMs)) as fc.Arbitrary<Step>,
  fc.constantFrom('a', 'b').map((engineId): Step => {
    const drain = { engineId, address: null, sinceMs: 0, overSeconds: 30, untilMs: 60_000 };
    return (signals, atMs) => signals.takeOrders({ drains: [drain], orders: [], actions: [] }, atMs);
  }),
  fc.boolean().map((isPartial): Step => {
    return (signals, atMs) => signals.notePartial(isPartial, atMs);
  }),
  fc.constantFrom('a', '10.0.0.3:80').map((target): Step => {
    return (signals, atMs) => signals.act({ action: 'drain', target, by: 'me' }, atMs);
  }),
  fc.constantFrom(...configs).map((config): Step => {
    return (signals, atMs) => signals.reconfigure(config, atMs);
  }),
);

class Text {
  readonly #writer = new RecordingWriter();
  #text = '';

  write(recorded: Recorded): void {
    for (const line of this.#writer.lines(recorded)) this.#text += line;
  }

  /** All that it holds. */
  read(): Recorded[] {
    const reader = new RecordingReader();
    const lines = this.#text.trimEnd().split('\n');
    return lines.flatMap((line) => reader.read(line) ?? []);
  }
}

/** Signals that are told what was recorded come to these states, and would not be taken for coming to others. */
function expectSame(recording: readonly Recorded[], states: readonly FleetState[]): void {
  const left = [...states];
  const replay = new SignalsReplay();
  for (const recorded of recording) {
    if (recorded.kind === 'solve') continue;
    replay.accept(recorded);
    if (recorded.kind !== 'plan') continue;
    const state = left.shift()!;
    expect(replay.isSame(state)).toBe(true);
    expect(replay.isSame({ ...state, settledSeconds: state.settledSeconds + 1 })).toBe(false);
  }
  expect(left).toEqual([]);
}

describe('recorded signals', () => {
  it('come to the same states again, byte for byte, whatever they were told, whenever the recording begins', () => {
    const history = fc.array(fc.tuple(fc.integer({ min: 1, max: 2_000 }), step), { maxLength: 60 });
    fc.assert(
      fc.property(history, fc.nat(60), (steps, later) => {
        let begun: { readonly text: Text; readonly at: number } | undefined;
        const held = [{ frontendId: 'f', poolId: 'm', requestsPerSecond: 4 }];
        const first = new Text();
        const recorders = new Recorders(
          (recorded) => first.write(recorded),
          () => signals.known(atMs),
        );
        let atMs = 0;
        const signals = new RecordedSignals(configs[0]!, held, 0, (signal) => recorders.record(signal));
        signals.resume({ ...signals.operations, penalties: [{ engineId: 'b', severity: 3, sinceMs: 0 }] }, 0);
        const states: FleetState[] = [];
        for (const [index, [pauseMs, act]] of steps.entries()) {
          if (index === later) {
            const text = new Text();
            begun = { text, at: first.read().length };
            recorders.add((recorded) => text.write(recorded));
          }
          atMs += pauseMs;
          act(signals, atMs, index + 1);
          states.push(signals.evaluate(atMs).state);
          recorders.record({ kind: 'plan', atMs });
        }
        const whole = first.read();
        expectSame(whole, states);
        if (begun === undefined) return;
        const rest = begun.text.read();
        expectSame(rest, states.slice(later));
        // As the files of a recording that goes on with another one.
        expectSame([...whole.slice(0, begun.at), ...rest], states);
      }),
      { numRuns: 50 },
    );
  });

  it('pass on all that they are told: whatever else they can do only looks', () => {
    const all = Object.entries(Object.getOwnPropertyDescriptors(Signals.prototype));
    const methods = all.flatMap(([name, { value }]) => (typeof value === 'function' ? [name] : []));
    expect(methods.filter((name) => !Object.hasOwn(RecordedSignals.prototype, name)).sort()).toEqual([
      'classAverages',
      'correctedNetworkSeconds',
      'currentOrders',
      'health',
      'inFlight',
      'replicasInFlight',
      'requestSizes',
      // For those that a replay begins with.
      'restore',
      'save',
      'surgeStrength',
      'turnGap',
    ]);
  });

  it('go on after a restart as if there had been none, and are recorded so', () => {
    const text = new Text();
    const before = new Signals(configs[0]!, [], 0);
    for (let second = 1; second <= 30; second++) {
      before.acceptReport('f', 'n', reportOf(second, 20 * second, 0.2), second * 1_000);
      before.evaluate(second * 1_000);
    }
    const after = new RecordedSignals(configs[0]!, [], 31_000, (signal) => text.write(signal));
    after.goOn(before.save(), 31_000);
    const report = reportOf(31, 660, 0.2);
    for (const signals of [before, after]) signals.acceptReport('f', 'n', report, 33_000);
    const { state } = after.evaluate(33_000);
    text.write({ kind: 'plan', atMs: 33_000 });
    expect(state).toEqual(before.evaluate(33_000).state);
    expect(state.demands[0]!.source).toBe('measured');
    expect(state.demands[0]!.requestsPerSecond).toBeCloseTo(20, 1);
    expectSame(text.read(), [state]);
  });

  it('are solved as they were last looked at before the solve began', () => {
    const replay = new SignalsReplay();
    const signals = new RecordedSignals(configs[0]!, [], 0, (signal) => replay.accept(signal));
    const { state } = signals.evaluate(1_000);
    replay.accept({ kind: 'plan', atMs: 1_000 });
    signals.evaluate(2_000);
    expect(replay.isSame(state)).toBe(true);
  });

  it('say nothing where a recording does not hold what they knew, or in the form of another version', () => {
    const signals = new RecordedSignals(configs[0]!, [], 0, () => {});
    const { state } = signals.evaluate(1);
    const known = signals.known(1);
    const beginnings: RecordedSignal[][] = [[], [{ ...known, format: known.format + 1 }], [known]];
    const said = beginnings.map((beginning) => {
      const replay = new SignalsReplay();
      for (const signal of beginning) replay.accept(signal);
      replay.accept({ kind: 'report', atMs: 1, frontendId: 'f', nodeId: 'n', report: reportOf(1, 1, 1) });
      replay.accept({ kind: 'evaluate', atMs: 1 });
      replay.accept({ kind: 'plan', atMs: 1 });
      return replay.isSame(state);
    });
    expect(said).toEqual([undefined, undefined, true]);
  });

  it('are refused with a code when they are damaged', () => {
    const replay = new SignalsReplay();
    replay.accept({ kind: 'start', atMs: 0, config: configs[0]!, held: [] });
    const unknown = { kind: 'load', atMs: 5, engineId: 'nobody', requests: 1, replicas: 1 } as const;
    const message = /^the load of 5 ms is damaged: /;
    expect(() => replay.accept(unknown)).toThrow(
      expect.objectContaining({ code: 'WARDROP_RECORDING_INVALID', message: expect.stringMatching(message) }),
    );
    const reader = new RecordingReader();
    reader.read('{"wardropRecording":2}');
    expect(() => reader.read('null')).toThrow('holds neither a solve nor a signal');
  });

  it('are written without the secrets of the configuration', () => {
    const writer = new RecordingWriter();
    let text = '';
    const write = (signal: Recorded) => {
      for (const line of writer.lines(signal)) text += line;
    };
    write(new RecordedSignals(configs[0]!, [], 0, write).known(1));
    expect(configs[0]!.server.token).toBe('secret-of-the-server');
    expect(text).toContain('"kind":"start"');
    expect(text).toContain('"kind":"known"');
    expect(text).not.toContain('secret-of-the-server');
  });
});
