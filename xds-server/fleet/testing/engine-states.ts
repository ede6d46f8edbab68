import type { Engine, Fleet } from '../fleet.js';
import type { EngineState } from '../fleet-state.js';

/** Every engine in full service, with those replicas ready that are said to be; by default, all. */
export function engineStates(
  fleet: Fleet,
  isReady: (engine: Engine, replica: number) => boolean = () => true,
): EngineState[] {
  return fleet.engines.map((engine) => ({
    id: engine.id,
    replicas: engine.endpoints.map((address, replica) => ({ address, ready: isReady(engine, replica) })),
    health: 1,
    ramp: 1,
    drain: 1,
    penalty: 0,
    latencyFactor: 1,
  }));
}
