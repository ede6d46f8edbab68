import { describe, expect, it } from 'vitest';
import { id64 } from '../../../wire/hash.js';
import { noVmUsage, type UsageReport } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import { Signals } from '../signals.js';

function configOf(network: string, steering = 'filter') {
  return loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}]',
      'engines:',
      '- {id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80]}',
      '- {id: b, region: r, models: [m], profile: p, endpoints: [10.0.0.2:80]}',
      `network: ${network}`,
      'profiles: {p: {requestsPerSecond: 10}}',
      `steering: ${steering}`,
    ].join('\n'),
  );
}

const config = configOf('{rttMs: {f: {a: 30, b: null}}}');

/** What a VM that has measured both engines so often says. */
function reportOf(measured: number, seconds: number): UsageReport {
  const networks = ['a', 'b'].map((id) => ({
    engine: id64(id),
    roundTripCount: measured,
    roundTripSecondsSum: measured * seconds,
  }));
  return { vms: [{ ...noVmUsage(1n, measured + 1), networks }] };
}

/** Both engines measured every five seconds. */
function measured(seconds: number, signals = new Signals(config, [], 0)): Signals {
  for (let n = 0; n <= 4; n++) signals.acceptReport('f', 'n', reportOf(n, seconds), n * 5_000);
  return signals;
}

describe('the network', () => {
  it('is as configured, corrected by what filters report; what cannot be reached stays so', () => {
    const { state, roundTrips, configuredFleet } = measured(0.06).evaluate(20_000);
    expect(state.fleet.networkSeconds).toEqual([[0.06, Number.POSITIVE_INFINITY]]);
    expect(roundTrips[0]![0]).toEqual({
      seconds: 0.06,
      isMeasured: true,
      configuredSeconds: 0.03,
      measured: { seconds: 0.06, samples: 4, atMs: 20_000 },
      isLimited: false,
    });
    expect(configuredFleet).toBe(config.fleet);
  });

  it('is the same fleet while nothing moves', () => {
    const signals = measured(0.06);
    const { state } = signals.evaluate(20_000);
    expect(signals.evaluate(21_000).state.fleet).toBe(state.fleet);
    expect(new Signals(config, [], 0).evaluate(0).state.fleet).toBe(config.fleet);
  });

  it('keeps what was measured when the table changes, and corrects the new one by it', () => {
    const signals = measured(0.06);
    signals.evaluate(20_000);
    const changed = configOf('{rttMs: {f: {a: 10, b: null}}}');
    signals.reconfigure(changed, 21_000);
    expect(signals.evaluate(21_000).state.fleet.networkSeconds[0]![0]).toBe(0.06);
    signals.reconfigure(configOf('{rttMs: {f: {a: 59, b: null}}}'), 22_000);
    expect(signals.evaluate(22_000).state.fleet.networkSeconds[0]![0]).toBe(0.059);
  });

  it('goes on after a restart with what was measured', () => {
    const before = measured(0.06);
    before.evaluate(20_000);
    const after = new Signals(config, [], 25_000);
    after.resume(before.operations, 25_000);
    expect(after.evaluate(25_000).state.fleet.networkSeconds[0]![0]).toBe(0.06);
    expect(after.correctedNetworkSeconds('f', 'a')).toBe(0.03);
  });

  it('follows what is measured after a restart also where the clock was an hour ahead before', () => {
    const before = measured(0.06);
    before.evaluate(20_000);
    const { roundTrips = [], ...operations } = before.operations;
    const ahead = roundTrips.map((each) => ({ ...each, atMs: each.atMs + 3_600_000 }));
    const after = new Signals(config, [], 0);
    after.resume({ ...operations, roundTrips: ahead }, 0);
    expect(after.evaluate(0).state.fleet.networkSeconds[0]![0]).toBe(0.06);
    for (let n = 0; n <= 60; n++) after.acceptReport('f', 'n', reportOf(n, 0.09), n * 5_000);
    expect(after.evaluate(300_000).state.fleet.networkSeconds[0]![0]).toBeCloseTo(0.09, 6);
  });

  it.each([
    ['measuring is off', configOf('{measure: false, rttMs: {f: {a: 30, b: 30}}}')],
    ['Envoy picks the host', configOf('{rttMs: {f: {a: 30, b: 30}}}', 'native')],
  ])('is as configured when %s', (_, other) => {
    const signals = measured(0.06, new Signals(other, [], 0));
    expect(signals.evaluate(20_000).state.fleet).toBe(other.fleet);
    expect(other.fleet).not.toHaveProperty('measuresNetwork');
  });

  it('is as configured at once when measuring is turned off', () => {
    const signals = measured(0.06);
    signals.evaluate(20_000);
    const off = configOf('{measure: false, rttMs: {f: {a: 30, b: null}}}');
    signals.reconfigure(off, 21_000);
    expect(signals.evaluate(21_000).state.fleet).toBe(off.fleet);
  });
});
