import { expect, it } from 'vitest';
import type { EngineState, FleetState } from '../../fleet/fleet-state.js';
import { defaultPolicy } from '../../fleet/testing/policy.js';
import { withTrickle } from './trickle.js';

function stateOf(latencyFactor: number): FleetState {
  const engine = (id: string, factor: number): EngineState => ({
    id,
    replicas: [{ address: '10.0.0.1:80', ready: true }],
    health: 1,
    ramp: 1,
    drain: 1,
    penalty: factor > 1 ? 0.8 : 0,
    latencyFactor: factor,
  });
  const demand = (frontendId: string, requestsPerSecond: number) => ({
    frontendId,
    poolId: 'm',
    requestsPerSecond,
  });
  return {
    fleet: {
      frontends: [{ id: 'far' }, { id: 'idle' }, { id: 'near' }],
      pools: [{ id: 'm', engineIds: ['a', 'b'] }],
      networkSeconds: [
        [0.1, 0.1],
        [0.001, 0.1],
        [0.01, 0.1],
      ],
    },
    engines: [engine('a', latencyFactor), engine('b', 1)],
    demands: [demand('far', 100), demand('idle', 0), demand('near', 100)],
  } as unknown as FleetState;
}

it('a penalised engine keeps a trickle of two requests a second, from the nearest frontend that has requests', () => {
  expect(withTrickle(defaultPolicy, stateOf(10)).bounds).toEqual([
    { frontendId: 'near', poolId: 'm', engineId: 'a', min: 0.02, max: 1 },
  ]);
});

it('nothing changes without a penalty, or where the operator has bounds', () => {
  expect(withTrickle(defaultPolicy, stateOf(1))).toBe(defaultPolicy);
  const bounds = [{ frontendId: 'near', poolId: 'm', engineId: 'a', min: 0, max: 0 }];
  expect(withTrickle({ ...defaultPolicy, bounds }, stateOf(10)).bounds).toEqual(bounds);
});
