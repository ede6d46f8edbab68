import { sum } from '../collections.js';
import { type Demand, effectiveCapacity, type FleetState } from '../fleet/fleet-state.js';
import { rowKey } from '../fleet/row-key.js';
import { type Profile, workSeconds } from '../profiles/profile.js';
import type { PlanRow } from './plan.js';

/** What a row's weights mean for the engines. */
type LoadedRow = Pick<PlanRow, 'frontendId' | 'poolId' | 'weights' | 'shed'>;

/**
 * Work per second that one unit of weight puts on an engine, in replicas, for a (frontend, pool). Demands of all
 * priorities count, less what is shed of them.
 */
export class EngineWork {
  readonly #state: FleetState;
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #profileOf: ReadonlyMap<string, string>;
  readonly #demands = new Map<string, Demand[]>();

  constructor(state: FleetState, profiles: ReadonlyMap<string, Profile>) {
    this.#state = state;
    this.#profiles = profiles;
    this.#profileOf = new Map(state.fleet.engines.map(({ id, profile }) => [id, profile]));
    for (const demand of state.demands) {
      const key = rowKey(demand);
      const list = this.#demands.get(key) ?? [];
      list.push(demand);
      this.#demands.set(key, list);
    }
  }

  /** Work per second on each engine under these rows. */
  loads(rows: readonly LoadedRow[]): Map<string, number> {
    const loads = new Map<string, number>();
    for (const row of rows) {
      const served = this.#served(row);
      for (const { engineId, weight } of row.weights) {
        const profile = this.#profiles.get(this.#profileOf.get(engineId) ?? '');
        if (profile === undefined) continue;
        const work = sum(served.map(({ demand, rps }) => rps * workSeconds(profile, demand)));
        loads.set(engineId, (loads.get(engineId) ?? 0) + weight * work);
      }
    }
    return loads;
  }

  /** A row's demands with what is not shed of them. */
  #served(row: LoadedRow): { readonly demand: Demand; readonly rps: number }[] {
    return (this.#demands.get(rowKey(row)) ?? []).map((demand) => {
      const shed = row.shed.find(({ priority }) => priority === demand.priority)?.fraction ?? 0;
      return { demand, rps: demand.requestsPerSecond * (1 - shed) };
    });
  }

  capacities(): Map<string, number> {
    return new Map(this.#state.engines.map((engine) => [engine.id, effectiveCapacity(engine)]));
  }
}
