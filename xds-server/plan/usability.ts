import { effectiveCapacity, type FleetState, LEAST_CAPACITY } from '../fleet/fleet-state.js';

/** Which engines could serve which rows now: eligible, reachable and with capacity. */
export class Usability {
  readonly #state: FleetState;
  readonly #engineIndexes: ReadonlyMap<string, number>;
  readonly #frontendIndexes: ReadonlyMap<string, number>;
  readonly #eligible: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(state: FleetState) {
    const { fleet } = state;
    this.#state = state;
    this.#engineIndexes = new Map(fleet.engines.map(({ id }, index) => [id, index]));
    this.#frontendIndexes = new Map(fleet.frontends.map(({ id }, index) => [id, index]));
    this.#eligible = new Map(fleet.pools.map(({ id, engineIds }) => [id, new Set(engineIds)]));
  }

  canServe(frontendId: string, poolId: string, engineId: string): boolean {
    const engine = this.#engineIndexes.get(engineId);
    const frontend = this.#frontendIndexes.get(frontendId);
    if (engine === undefined || frontend === undefined) return false;
    return (
      this.#eligible.get(poolId)?.has(engineId) === true &&
      Number.isFinite(this.#state.fleet.networkSeconds[frontend]![engine]) &&
      effectiveCapacity(this.#state.engines[engine]!) >= LEAST_CAPACITY
    );
  }
}
