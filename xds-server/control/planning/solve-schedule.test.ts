import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import { Signals } from '../../signals/signals.js';
import { SolveSchedule } from './solve-schedule.js';

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'frontends: [{id: f, region: r}]',
    'engines: [{id: a, region: r, models: [m], profile: p, endpoints: [10.0.0.1:80]}]',
    'profiles: {p: {requestsPerSecond: 1}}',
  ].join('\n'),
);
const { state } = new Signals(config, [], 0).evaluate(0);
const lessSupply: FleetState = {
  ...state,
  engines: state.engines.map((engine) => ({
    ...engine,
    replicas: engine.replicas.map((replica) => ({ ...replica, ready: false })),
  })),
};

const lessInPool: FleetState = {
  ...state,
  fleet: { ...state.fleet, pools: state.fleet.pools.map((pool) => ({ ...pool, lastResortIds: ['b'] })) },
};

const withDemand = (change: Partial<FleetState['demands'][number]>): FleetState => ({
  ...state,
  demands: state.demands.map((demand) => ({ ...demand, ...change })),
});
const moreDemand = withDemand({ requestsPerSecond: 7 });
const longerWay: FleetState = { ...state, fleet: { ...state.fleet, networkSeconds: [[0.1]] } };

function solvedAt(nowMs: number): SolveSchedule {
  const schedule = new SolveSchedule();
  schedule.begin(1, state, nowMs);
  schedule.end(true);
  return schedule;
}

it('the first solve is due at once', () => {
  expect(new SolveSchedule().isDue(1, state, 0)).toBe(true);
});

it('lost replicas and a new configuration are solved for at once, new demand and other round trips after a second', () => {
  const schedule = solvedAt(10_000);
  expect(schedule.isDue(1, lessSupply, 10_001)).toBe(true);
  expect(schedule.isDue(1, lessInPool, 10_001)).toBe(true);
  expect(schedule.isDue(2, state, 10_001)).toBe(true);
  expect(schedule.isDue(1, moreDemand, 10_999)).toBe(false);
  expect(schedule.isDue(1, moreDemand, 11_000)).toBe(true);
  expect(schedule.isDue(1, longerWay, 10_999)).toBe(false);
  expect(schedule.isDue(1, longerWay, 11_000)).toBe(true);
});

it('other sizes of requests and other pauses between turns are solved for after a second, another source of the same is not', () => {
  const schedule = solvedAt(10_000);
  for (const name of ['promptTokens', 'uncachedPromptTokens', 'outputTokens', 'turnGapSeconds'] as const) {
    const other = withDemand({ [name]: state.demands[0]![name] + 1 });
    expect(schedule.isDue(1, other, 10_999)).toBe(false);
    expect(schedule.isDue(1, other, 11_000)).toBe(true);
  }
  expect(schedule.isDue(1, withDemand({ source: 'held' }), 19_999)).toBe(false);
});

it('steady conditions are solved every ten seconds', () => {
  const schedule = solvedAt(10_000);
  expect(schedule.isDue(1, state, 19_999)).toBe(false);
  expect(schedule.isDue(1, { ...state, settledSeconds: 99, atMs: 20_000 }, 20_000)).toBe(true);
});

it('new demand does not wait after a solve that was made because time had passed', () => {
  const schedule = solvedAt(10_000);
  schedule.begin(1, state, 20_000);
  schedule.end(true);
  expect(schedule.isDue(1, moreDemand, 20_001)).toBe(true);
});

it('failed solves are repeated after 2, 4, 8, then every 10 s, and at once when supply changes', () => {
  const schedule = new SolveSchedule();
  for (const waitMs of [2_000, 4_000, 8_000, 10_000, 10_000]) {
    schedule.begin(1, state, 0);
    schedule.end(false);
    expect(schedule.isDue(1, state, waitMs - 1)).toBe(false);
    expect(schedule.isDue(1, moreDemand, waitMs - 1)).toBe(false);
    expect(schedule.isDue(1, state, waitMs)).toBe(true);
    expect(schedule.isDue(1, lessSupply, 1)).toBe(true);
  }
});
