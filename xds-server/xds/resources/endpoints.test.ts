import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema, anyUnpack } from '@bufbuild/protobuf/wkt';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EngineState } from '../../fleet/fleet-state.js';
import { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.js';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.js';
import { endpointsOf, hostsOf, hostWeight, type PoolEngine } from './endpoints.js';

function stateOf(id: string, replicas: EngineState['replicas'], drain = 1): EngineState {
  return { id, replicas, health: 1, ramp: 1, drain, penalty: 0, latencyFactor: 1 };
}

/** An engine with these replicas, ready or not. */
function poolEngine(id: string, weight: number, ready: readonly boolean[], drain = 1): PoolEngine {
  const endpoints = ready.map((_, i) => `10.0.0.${i}:80`);
  const replicas = endpoints.map((address, i) => ({ address, ready: ready[i]! }));
  const state = stateOf(id, replicas, drain);
  const metrics = { kind: 'none', path: '' } as const;
  const engine = { id, region: 'r', models: [], labels: {}, profile: '', endpoints, metrics, healthPath: '' };
  return { ...hostsOf(engine, state), weight };
}

function assignment(...engines: PoolEngine[]) {
  const any = fromBinary(AnySchema, endpointsOf('m', engines).any);
  return anyUnpack(any, ClusterLoadAssignmentSchema)!;
}

const localities = (...engines: PoolEngine[]) =>
  assignment(...engines).endpoints.map(({ locality, priority, lbEndpoints }) => ({
    engine: locality?.subZone,
    priority,
    weights: lbEndpoints.map((endpoint) => endpoint.loadBalancingWeight),
    health: lbEndpoints.map((endpoint) => HealthStatus[endpoint.healthStatus]),
  }));

describe('the endpoints of a pool', () => {
  it('divide the weight of an engine among its ready replicas', () => {
    expect(localities(poolEngine('a', 0.6, [true, false, true]), poolEngine('b', 0.4, [true]))).toEqual([
      { engine: 'a', priority: 0, weights: [3e8, 3e8, 3e8], health: ['HEALTHY', 'UNHEALTHY', 'HEALTHY'] },
      { engine: 'b', priority: 0, weights: [4e8], health: ['HEALTHY'] },
    ]);
  });

  it('put engines without weight at priority 1, or all at 0 when none has any', () => {
    const b = { engine: 'b', weights: [1], health: ['HEALTHY'] };
    expect(localities(poolEngine('a', 1, [true]), poolEngine('b', 0, [true]))[1]).toEqual({
      ...b,
      priority: 1,
    });
    expect(localities(poolEngine('b', 0, [true]))).toEqual([{ ...b, priority: 0 }]);
  });

  it('are never chosen by Envoy on a drained engine, nor where they left the fleet', () => {
    expect(localities(poolEngine('a', 0, [true], 0))[0]?.health).toEqual(['DRAINING']);
    const { engine } = poolEngine('a', 0, [true]);
    expect(localities({ ...hostsOf(engine, undefined), weight: 0 })[0]?.health).toEqual(['DRAINING']);
    const shrunk = { ...engine, endpoints: ['10.0.0.0:80', '10.0.0.9:80'] };
    const state = stateOf('a', [{ address: '10.0.0.0:80', ready: true }]);
    expect(localities({ ...hostsOf(shrunk, state), weight: 1 })[0]?.health).toEqual(['HEALTHY', 'DRAINING']);
  });

  it('have weights that Envoy accepts, and that keep the share of each engine', () => {
    const share = fc.double({ min: 1e-6, max: 1, noNaN: true });
    const engine = fc.record({ share, replicas: fc.integer({ min: 1, max: 1000 }) });
    fc.assert(
      fc.property(fc.array(engine, { minLength: 1, maxLength: 8 }), (engines) => {
        const sum = engines.reduce((total, each) => total + each.share, 0);
        const pooled = engines.map((each, i) =>
          poolEngine(`e${i}`, each.share / sum, Array<boolean>(each.replicas).fill(true)),
        );
        const totals = pooled.map((each) => hostWeight(each) * each.engine.endpoints.length);
        const total = totals.reduce((a, b) => a + b, 0);
        for (const [i, each] of pooled.entries()) {
          expect(Number.isInteger(hostWeight(each))).toBe(true);
          expect(hostWeight(each)).toBeGreaterThanOrEqual(1);
          expect(totals[i]).toBeLessThan(2 ** 32);
          // Rounding is at most half a unit per host.
          expect(Math.abs(totals[i]! / total - each.weight)).toBeLessThan(1e-5);
        }
      }),
    );
  });
});
