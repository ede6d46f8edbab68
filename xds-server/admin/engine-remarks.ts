import type { EngineState } from '../fleet/fleet-state.js';

/** What keeps an engine below its capacity, in words. */
export function engineRemarks(
  { health, ramp, drain, penalty, latencyFactor }: EngineState,
  isLeftOut: boolean,
): readonly string[] {
  return [
    ...(isLeftOut ? ['left out after failures'] : []),
    ...(health === 1 ? [] : [`gets done ${percent(health)} of its profile`]),
    ...(ramp === 1 ? [] : [`starting, at ${percent(ramp)}`]),
    ...(drain === 1 ? [] : [drain === 0 ? 'drained' : `draining, at ${percent(drain)}`]),
    ...(penalty === 0 ? [] : [`penalty ${percent(penalty)}, ${latencyFactor.toFixed(1)} times as slow`]),
  ];
}

function percent(share: number): string {
  return `${(100 * share).toFixed(0)} %`;
}
