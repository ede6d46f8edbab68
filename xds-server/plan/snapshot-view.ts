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
    models: models(fleet),
    pools: fleet.pools.map((pool) => snapshotPool(pool, rows.get(pool.id), indexes)),
    engines: fleet.engines.map(
      ({ id }): SnapshotEngine => ({
        id,
        replicas: (states.get(id)?.replicas ?? []).map(({ address, ready }) => ({ address, ready })),
      }),
    ),
    ...(fleet.needs === undefined ? {} : { needs: fleet.needs.map(({ id, when }) => ({ id, when })) }),
  };
}

/** Models and their aliases with the pools that serve them, sorted by name. */
function models(fleet: Fleet): SnapshotModel[] {
  const pools = new Map(fleet.pools.map(({ id }, index) => [id, index]));
  const needs = new Map(fleet.needs?.map(({ id }, index) => [id, index]));
  const needsOf = new Map(fleet.modelNeeds?.map((entry) => [entry.model, entry]));
  const served = fleet.pools.flatMap(({ model, needs: carried }, pool): SnapshotModel[] => {
    if (carried.length > 0) return [];
    const entry = needsOf.get(model);
    if (entry === undefined) return [{ name: model, pool }];
    return [
      {
        name: model,
        pool,
        needs: entry.needs.map((id) => needs.get(id)!),
        pools: entry.poolIds.map((id) => (id === null ? -1 : pools.get(id)!)),
      },
    ];
  });
  const byName = new Map(served.map((model) => [model.name, model]));
  const aliases = (fleet.aliases ?? []).map(({ name, model }) => ({ ...byName.get(model)!, name }));
  return [...served, ...aliases].sort((a, b) => (a.name < b.name ? -1 : 1));
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
