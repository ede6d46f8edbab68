import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { engineStates } from '../../fleet/testing/engine-states.js';
import { mixesOf } from '../../signals/request-mix.js';
import { type ReliefInput, ReliefWatch } from './relief-watch.js';

/** A request takes 2 s on an idle replica and 0.1 replica-seconds of work. */
const text = `
frontends: [{id: f, region: r}]
engines:
- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:1", "10.0.0.1:2"]}
- {id: b, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:1"], maxInFlight: 10}
- {id: c, region: r, models: [m], profile: rate, endpoints: ["10.0.0.3:1"]}
profiles:
  p: {work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.73}, tbot: {baseSeconds: 0.01}}
  rate: {requestsPerSecond: 1}
`;

function inputOf(inFlight: Record<string, number>, change: Partial<ReliefInput> = {}): ReliefInput {
  const config = loadConfig('/none/fleet.yaml', () => text);
  const engines = engineStates(config.fleet);
  const state = { fleet: config.fleet, atMs: 0, engines, demands: [], settledSeconds: 0 };
  const counts = new Map(Object.entries(inFlight));
  return {
    config,
    mixes: mixesOf(config.fleet, config.expectedDemand),
    state,
    inFlight: counts,
    replicasInFlight: new Map(),
    capacities: [],
    outside: new Map(),
    loads: { pages: new Map(), responses: () => undefined },
    envoys: new Map([['f', 1]]),
    nowMs: 0,
    ...change,
  };
}

function watchFor(seconds: number, inFlight: Record<string, number>, change: Partial<ReliefInput> = {}) {
  const watch = new ReliefWatch();
  let relief = watch.update(inputOf(inFlight, change));
  for (let second = 1; second <= seconds; second++)
    relief = watch.update(inputOf(inFlight, { nowMs: second * 1_000, ...change }));
  return relief;
}

describe('relief', () => {
  it('turns nobody away but where a limit is configured', () => {
    const { limits } = watchFor(0, {});
    expect([...limits]).toEqual([['b', 10]]);
  });

  it('divides limits by the Envoys that share them, and leaves room for requests from elsewhere', () => {
    expect(watchFor(0, {}, { envoys: new Map([['f', 4]]) }).limits.get('b')).toBe(2.5);
    expect(watchFor(0, {}, { outside: new Map([['b', 6.5]]) }).limits.get('b')).toBe(4);
    expect(watchFor(0, {}, { outside: new Map([['b', 99]]) }).limits.get('b')).toBe(0);
  });

  it('says what engines have in flight when they are full, by the curves of their profiles', () => {
    expect([...watchFor(0, {}).full]).toEqual([
      ['a', 39],
      ['b', 7],
    ]);
  });

  it('sends nobody to an engine with a penalty, however few requests it has', () => {
    const { state } = inputOf({});
    const slow = state.engines.map((engine) =>
      engine.id === 'a' ? engine : { ...engine, latencyFactor: 3 },
    );
    const relief = watchFor(20, { a: 170, b: 1 }, { state: { ...state, engines: slow } });
    expect([...relief.engines.keys()]).toEqual([]);
  });

  it('lets keys overflow from the engine with too much in flight, and from no other', () => {
    expect([...watchFor(20, { a: 170, b: 1 }).engines.keys()]).toEqual(['a']);
    expect([...watchFor(20, { a: 30, b: 10 }).engines.keys()]).toEqual(['b']);
    // By Little's law, 0.98 / 0.1 requests/s of 2 s each are expected at each of two replicas, and four times that is
    // too much; a mere rate says nothing.
    expect(watchFor(20, { a: 150, b: 7, c: 1_000 }).engines.size).toBe(0);
  });

  it('lets keys overflow from the replica with too much in flight to the others of the engine', () => {
    const replicasInFlight = new Map([
      ['10.0.0.1:1', 90],
      ['10.0.0.1:2', 3],
    ]);
    const relief = watchFor(20, { a: 93, b: 1 }, { replicasInFlight });
    expect([...relief.replicas.keys()]).toEqual(['10.0.0.1:1']);
    replicasInFlight.set('10.0.0.1:2', 40);
    expect(watchFor(20, { a: 80, b: 1 }, { replicasInFlight }).replicas.size).toBe(0);
  });

  it('leaves the queue of an engine to the plan that has just learnt that the engine can do less', () => {
    const lowered = { engineId: 'a', state: 'corrected' as const, share: 0.7, sinceMs: 0, loweredMs: 0 };
    const capacities = [{ ...lowered, evidence: null, endsWhen: null }];
    expect(watchFor(59, { a: 170, b: 1 }, { capacities }).engines.size).toBe(0);
    expect([...watchFor(80, { a: 170, b: 1 }, { capacities }).engines.keys()]).toEqual(['a']);
  });

  it('does not take from a penalised engine the few requests that its recovery is seen by', () => {
    const watch = new ReliefWatch();
    const { state } = inputOf({});
    const engines = state.engines.map((engine) =>
      engine.id === 'a' ? { ...engine, latencyFactor: 3 } : engine,
    );
    const look = (second: number, change: Partial<ReliefInput> = {}) =>
      watch.update(inputOf({ a: 170, b: 1 }, { nowMs: second * 1_000, ...change })).engines;
    let overflows = look(0);
    for (let second = 1; second < 20; second++) overflows = look(second);
    expect([...overflows.keys()]).toEqual(['a']);
    for (let second = 20; second < 60; second++) overflows = look(second, { state: { ...state, engines } });
    expect(overflows.size).toBe(0);
  });

  it('leaves everything as it is while Envoys are silent', () => {
    const watch = new ReliefWatch();
    for (let second = 0; second < 20; second++)
      watch.update(inputOf({ a: 170, b: 1 }, { nowMs: second * 1_000 }));
    const before = watch.update(inputOf({}, { inFlight: undefined, nowMs: 20_000 })).engines.get('a');
    expect(before).toBeGreaterThan(0);
    expect(watch.update(inputOf({}, { inFlight: undefined, nowMs: 900_000 })).engines.get('a')).toBe(before);
  });
});
