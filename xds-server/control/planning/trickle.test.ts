import { expect, it } from 'vitest';
import { sum } from '../../collections.js';
import type { EngineState, FleetState } from '../../fleet/fleet-state.js';
import { defaultPolicy } from '../../fleet/testing/policy.js';
import { withTrickle } from './trickle.js';

/** Of the engines of the pool `a` is the first; `slowIds` are slow, too. */
function stateOf(latencyFactor: number, rps = 100, slowIds: readonly string[] = []): FleetState {
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
      pools: [{ id: 'm', engineIds: ['a', 'b', ...slowIds] }],
      networkSeconds: [
        [0.1, 0.1, ...slowIds.map(() => 0.1)],
        [0.001, 0.1, ...slowIds.map(() => 0.001)],
        [0.01, 0.1, ...slowIds.map(() => 0.01)],
      ],
    },
    engines: [engine('a', latencyFactor), engine('b', 1), ...slowIds.map((id) => engine(id, 10))],
    demands: [demand('far', rps), demand('idle', 0), demand('near', rps)],
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

it('however many engines are penalised, their trickles take no more than a fifth of a row together', () => {
  const slowIds = Array.from({ length: 11 }, (_, at) => `c${at}`);
  const { bounds } = withTrickle(defaultPolicy, stateOf(10, 15, slowIds));
  expect(bounds).toHaveLength(12);
  expect(new Set(bounds.map(({ frontendId }) => frontendId))).toEqual(new Set(['near']));
  expect(sum(bounds.map(({ min }) => min))).toBeCloseTo(0.2, 9);
});

it('a trickle leaves the least weights of other engines that an operator wants in the row', () => {
  const pinned = (pin: number) => {
    const bounds = [{ frontendId: 'near', poolId: 'm', engineId: 'b', min: pin, max: pin }];
    return withTrickle({ ...defaultPolicy, bounds }, stateOf(10)).bounds.slice(1);
  };
  expect(pinned(1)).toEqual([]);
  expect(pinned(0.99)).toMatchObject([{ engineId: 'a', min: expect.closeTo(0.01, 6) }]);
  expect(pinned(0.5)).toMatchObject([{ engineId: 'a', min: 0.02 }]);
});
