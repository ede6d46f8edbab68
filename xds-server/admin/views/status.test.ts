import { expect, it } from 'vitest';
import type { Demand, EngineState } from '../../fleet/fleet-state.js';
import type { EngineTraffic } from '../../signals/usage/recent-traffic.js';
import { engineRemarks } from './engine-remarks.js';
import type { Overview } from './overview.js';
import { serverStatus } from './status.js';

const atMs = 1_700_000_000_000;

function demand(frontendId: string, requestsPerSecond: number, source: Demand['source']): Demand {
  return { frontendId, requestsPerSecond, source, poolId: 'm', priority: 0 } as Demand;
}

it('sums up demand, capacity and readiness, and says what keeps an engine from its own', () => {
  const replica = (ready: boolean) => ({ address: '10.0.0.1:1', ready });
  const state: EngineState = {
    ...{ id: 'a', replicas: [replica(true), replica(true), replica(false)] },
    ...{ health: 1, ramp: 1, drain: 0.5, penalty: 0, latencyFactor: 1 },
  };
  const envoy = { version: '1.40.0', xds: 'all accepted' as const, snapshot: null };
  const latencies = { firstTokenSeconds: 0.1, wholeSeconds: null };
  const offered = { offeredPerSecond: 3, refusedShare: 0, failedShare: 0, ...latencies };
  const ended = { endedPerSecond: 3, failuresPerSecond: 0, answers: 9, rejectedShare: 0, ...latencies };
  const overview: Overview = {
    atMs,
    startedAtMs: atMs - 5_000,
    plan: null,
    plannedBy: '10.0.0.9:18001',
    steered: 0.3,
    alarms: [{ id: 'drained:a', sinceMs: atMs, message: 'engine a is drained' }],
    frontends: [
      { id: 'west', traffic: offered },
      { id: 'east', traffic: offered },
    ],
    pools: [],
    demands: [demand('west', 3, 'measured'), demand('west', 4, 'held'), demand('east', 0, 'expected')],
    engines: [
      {
        ...{ state, traffic: ended, inFlight: 2 },
        ...{
          measuredShare: 1,
          isLeftOut: true,
          drainedReplicas: 1,
          penaltyOrder: null,
          lastResortOf: [],
          keptFor: ['m'],
        },
      },
    ],
    envoys: [
      { ...envoy, nodeId: 'w1', frontendId: 'west' },
      { ...envoy, nodeId: 'w2', frontendId: 'west' },
    ],
  };
  expect(serverStatus(overview)).toEqual({
    atMs,
    startedAtMs: atMs - 5_000,
    plan: null,
    plannedBy: '10.0.0.9:18001',
    steered: 0.3,
    alarms: overview.alarms,
    frontends: [
      {
        frontendId: 'west',
        requestsPerSecond: 7,
        sources: ['held', 'measured'],
        envoys: 2,
        traffic: offered,
      },
      { frontendId: 'east', requestsPerSecond: 0, sources: ['expected'], envoys: 0, traffic: offered },
    ],
    engines: [
      {
        ...{ engineId: 'a', utilization: null, effectiveCapacity: 1, readyReplicas: 2, replicas: 3 },
        ...{
          inFlight: 2,
          traffic: ended,
          remarks: [
            'left out after failures',
            'seems lost, and is kept for pools with nobody else: m',
            'draining, at 50 %',
            '1 of its replicas drained',
          ],
        },
      },
    ],
    envoys: overview.envoys,
  });
});

it('tells an engine whose penalty an operator holds or released, as no alarm does', () => {
  const engine = (kind: 'hold' | 'release', penalty: number, latencyFactor: number) => ({
    state: { id: 'a', replicas: [], health: 1, ramp: 1, drain: 1, penalty, latencyFactor },
    ...{ traffic: {} as EngineTraffic, inFlight: null, measuredShare: 1 },
    ...{ isLeftOut: false, drainedReplicas: 0, lastResortOf: [], keptFor: [] },
    penaltyOrder: { kind, untilMs: Date.UTC(2026, 0, 31) },
  });
  expect(engineRemarks(engine('release', 0, 1))).toEqual([
    'no penalty until 2026-01-31T00:00:00.000Z, by an operator',
  ]);
  expect(engineRemarks(engine('hold', 0.5, 2))).toEqual([
    'penalty 50 %, 2.0 times as slow',
    'penalty held until 2026-01-31T00:00:00.000Z, by an operator',
  ]);
});

it('tells work from elsewhere from what an engine gets done, as what is to be done differs', () => {
  const engine = (health: number, measuredShare: number) => ({
    state: { id: 'a', replicas: [], health, ramp: 1, drain: 1, penalty: 0, latencyFactor: 1 },
    ...{ traffic: {} as EngineTraffic, inFlight: null, measuredShare },
    ...{ isLeftOut: false, drainedReplicas: 0, penaltyOrder: null, lastResortOf: [], keptFor: [] },
  });
  expect(engineRemarks(engine(1, 1))).toEqual([]);
  expect(engineRemarks(engine(0.6, 1))).toEqual(['40 % taken by work from elsewhere']);
  expect(engineRemarks(engine(0.7, 0.7))).toEqual(['gets done 70 % of its profile']);
  expect(engineRemarks(engine(0.35, 0.7))).toEqual([
    'gets done 70 % of its profile',
    '50 % taken by work from elsewhere',
  ]);
});
