import type {
  SnapshotEngine,
  SnapshotModel,
  SnapshotPool,
  SnapshotSegment,
  SnapshotView,
} from '../../wire/snapshot-view.js';
import type { Fleet, Pool } from '../fleet/fleet.js';
import type { EngineState } from '../fleet/fleet-state.js';
import { handOver } from './hand-over.js';
import type { Plan, PlanRow } from './plan.js';

export interface SnapshotViewInput {
  readonly plan: Plan;
  readonly fleet: Fleet;
  /** Engine states now, which may be newer than the plan. */
  readonly engines: readonly EngineState[];
  readonly frontendId: string;
  readonly version: number;
  readonly salt: string;
  readonly issuedAtMs: number;
}

/** Priority of requests that ask for none. */
const DEFAULT_PRIORITY = 0;

/**
 * What one frontend's filters need of a plan. Engines are those of the fleet, with their replicas' readiness of now.
 * A pool that the plan does not know yet, or that nobody can serve, has no segments. The plan may be older than the
 * fleet: segments of engines that are no longer eligible go to their backups.
 */
export function buildSnapshotView(input: SnapshotViewInput): SnapshotView {
  const { plan, fleet, engines, frontendId } = input;
  const rows = new Map(
    plan.rows.filter((row) => row.frontendId === frontendId).map((row) => [row.poolId, row]),
  );
  const indexes = new Map(fleet.engines.map(({ id }, index) => [id, index]));
  const states = new Map(engines.map((engine) => [engine.id, engine]));
  return {
    version: input.version,
    planId: plan.id,
    issuedAtMs: input.issuedAtMs,
    frontendId,
    salt: input.salt,
    models: models(fleet.pools),
    pools: fleet.pools.map((pool) => snapshotPool(pool, rows.get(pool.id), indexes)),
    engines: fleet.engines.map(
      ({ id }): SnapshotEngine => ({
        id,
        replicas: (states.get(id)?.replicas ?? []).map(({ address, ready }) => ({ address, ready })),
      }),
    ),
  };
}

/** Models and the pool for requests without needs, sorted by name. */
function models(pools: readonly Pool[]): SnapshotModel[] {
  return pools
    .flatMap(({ model, needs }, index) => (needs.length === 0 ? [{ name: model, pool: index }] : []))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

function snapshotPool(
  pool: Pool,
  row: PlanRow | undefined,
  indexes: ReadonlyMap<string, number>,
): SnapshotPool {
  const eligible = new Set(pool.engineIds);
  const current = row && handOver(row, pool.engineIds, (id) => eligible.has(id));
  return {
    id: pool.id,
    cluster: pool.id,
    engines: pool.engineIds.map((id) => indexes.get(id)!).sort((a, b) => a - b),
    segments: (current?.segments ?? []).map(
      ({ start, ownerId, backupId }): SnapshotSegment => ({
        start,
        owner: indexes.get(ownerId)!,
        backup: backupId === null || !eligible.has(backupId) ? -1 : indexes.get(backupId)!,
      }),
    ),
    retryRatio: current?.retryRatio ?? 0,
    shedFraction: current?.shed.find(({ priority }) => priority === DEFAULT_PRIORITY)?.fraction ?? 0,
  };
}
