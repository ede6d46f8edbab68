import type { SolverInput } from '../solution.js';

/** By engine id: the ids of all engines that pools tie to it, directly or by way of others, itself among them. */
export function tiedEngines({ state }: Pick<SolverInput, 'state'>): ReadonlyMap<string, readonly string[]> {
  const groupOf = new Map<string, readonly string[]>();
  for (const { engineIds } of state.fleet.pools) {
    const groups = new Set(engineIds.map((id) => groupOf.get(id) ?? [id]));
    if (groups.size < 2 && groupOf.has(engineIds[0]!)) continue;
    const merged = [...groups].flat();
    for (const id of merged) groupOf.set(id, merged);
  }
  return groupOf;
}
