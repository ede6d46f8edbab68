import type { SolverInput } from '../solution.js';
import { capacityOf } from './flows.js';
import { total } from './sums.js';

/** By engine id: what all engines can do together that pools tie to it, directly or by way of others. */
export function tiedCapacity({ state }: SolverInput): ReadonlyMap<string, number> {
  const groupOf = new Map<string, readonly string[]>();
  for (const { engineIds } of state.fleet.pools) {
    const groups = new Set(engineIds.map((id) => groupOf.get(id) ?? [id]));
    const merged = [...groups].flat();
    for (const id of merged) groupOf.set(id, merged);
  }
  const capacities = new Map(state.engines.map((engine) => [engine.id, capacityOf(engine)]));
  const sums = new Map<readonly string[], number>();
  for (const group of groupOf.values()) {
    if (!sums.has(group)) sums.set(group, total(group.map((id) => capacities.get(id) ?? 0)));
  }
  return new Map([...groupOf].map(([id, group]) => [id, sums.get(group)!]));
}
