import { MAX_NAME_BYTES } from '../../wire/layout.js';
import type {
  SnapshotClass,
  SnapshotEngine,
  SnapshotModel,
  SnapshotPool,
  SnapshotSegment,
  SnapshotView,
} from '../../wire/snapshot-view.js';
import { byName } from '../collections.js';
import type { Fleet, Pool } from '../fleet/fleet.js';
import type { EngineState } from '../fleet/fleet-state.js';
import { prioritiesOf } from '../fleet/priority-class.js';
import { handOver } from './partition/hand-over.js';
import type { Plan, PlanRow } from './plan.js';
import { noRelief, type Relief } from './protection/relief.js';

export interface SnapshotViewInput {
  readonly plan: Plan;
  readonly fleet: Fleet;
  /** Round trips in force, where they are others than those of the fleet; by frontend and engine. */
  readonly networkSeconds?: Fleet['networkSeconds'];
  /** Engine states now, which may be newer than the plan. */
  readonly engines: readonly EngineState[];
  readonly frontendId: string;
  readonly version: number;
  readonly salt: string;
  readonly issuedAtMs: number;
  /** 0..1 share of keys that are steered; all when absent. */
  readonly steered?: number;
  /** How engines are relieved for now; absent when none is. */
  readonly relief?: Relief;
}

/** Priority of requests that ask for none. */
const DEFAULT_PRIORITY = 0;
/** In the id of the need that stands for a class; no part of a need's own. */
const CLASS_MARK = 'class/';

/**
 * What one frontend's filters need of a plan. Engines are those of the fleet, with their replicas' readiness of now.
 * A pool that the plan does not know yet, or that nobody can serve, has no segments. The plan may be older than the
 * fleet: segments of engines that are no longer eligible go to their backups.
 */
export function buildSnapshotView(input: SnapshotViewInput): SnapshotView {
  const { plan, fleet, engines, frontendId, steered = 1, relief = noRelief } = input;
  const classes = fleet.classes ?? [];
  const needs = [
    ...(fleet.needs ?? []).map(({ id, when }) => ({ id, when })),
    ...classes.map(({ id, when }) => ({ id: CLASS_MARK + id, when })),
  ];
  const firstClass = needs.length - classes.length;
  const rows = new Map(
    plan.rows.filter((row) => row.frontendId === frontendId).map((row) => [row.poolId, row]),
  );
  const network = networkOf(fleet, frontendId);
  const isMeasured = (engine: number) => fleet.measuresNetwork === true && Number.isFinite(network[engine]);
  const indexes = new Map(fleet.engines.map(({ id }, index) => [id, index]));
  const states = new Map(engines.map((engine) => [engine.id, engine]));
  const uses = usesOf(plan, frontendId);
  return {
    version: input.version,
    planId: plan.id,
    issuedAtMs: input.issuedAtMs,
    frontendId,
    salt: input.salt,
    ...(steered < 1 && { steered }),
    models: models(fleet),
    pools: fleet.pools.map((pool) => {
      const hasReplica = pool.engineIds.some((id) => (states.get(id)?.replicas.length ?? 0) > 0);
      return snapshotPool(pool, rows.get(pool.id), indexes, prioritiesOf(fleet), hasReplica);
    }),
    engines: fleet.engines.map(
      ({ id, healthPath }, index): SnapshotEngine => ({
        id,
        ...(isMeasured(index) && isVisible(healthPath) && { probePath: healthPath }),
        ...(relief.engines.has(id) && { overflow: relief.engines.get(id)! }),
        ...(relief.limits.has(id) && { replicaLimit: relief.limits.get(id)! }),
        ...busyAbove(uses.get(id), relief.full.get(id), relief.envoys.get(frontendId) ?? 1),
        replicas: (states.get(id)?.replicas ?? []).map(({ address, ready }) => ({
          address,
          ready,
          ...(relief.replicas.has(address) && { overflow: relief.replicas.get(address)! }),
        })),
      }),
    ),
    ...(needs.length > 0 && { needs }),
    ...(classes.length > 0 && {
      classRules: classes.map(({ priority }, index) => ({ need: firstClass + index, priority })),
    }),
    nearest: nearestOf(
      { ...fleet, networkSeconds: input.networkSeconds ?? fleet.networkSeconds },
      frontendId,
    ),
  };
}

/**
 * Above an Envoy's part of what a full engine has in flight, by this share or by this many standard deviations of a random
 * number of that size, whichever is more, an engine is busy.
 */
const BUSY_SHARE = 0.3;
const BUSY_SIGMA = 3;

/** What the plan uses of an engine. */
interface Use {
  readonly rho: number;
  /** Requests per second from all frontends, and from this one. */
  readonly all: number;
  readonly own: number;
  /** Frontends that it gets requests from. */
  readonly users: number;
}

/** By the id of engines that the plan sends requests of this frontend. */
function usesOf({ rows, engines }: Plan, frontendId: string): ReadonlyMap<string, Use> {
  const flows = new Map<string, { all: number; own: number; readonly users: Set<string> }>();
  for (const row of rows) {
    for (const { engineId, weight } of row.weights) {
      const flow = row.demandRps * weight;
      if (flow === 0) continue;
      const sums = flows.get(engineId) ?? { all: 0, own: 0, users: new Set() };
      flows.set(engineId, sums);
      sums.all += flow;
      sums.users.add(row.frontendId);
      if (row.frontendId === frontendId) sums.own += flow;
    }
  }
  const rhos = new Map(engines.map(({ engineId, rho }) => [engineId, rho]));
  return new Map(
    [...flows]
      .filter(([, { own }]) => own > 0)
      .map(([id, { users, ...sums }]) => [id, { ...sums, users: users.size, rho: rhos.get(id) ?? 1 }]),
  );
}

/**
 * An Envoy's part is that of its frontend: of what the plan uses of the engine, as its flows are shared out, and of what it leaves
 * idle, an equal one to each frontend that it sends there. So a frontend that asked for next to nothing may begin to send.
 * Nobody is busy whom the plan gives nothing.
 */
function busyAbove(
  use: Use | undefined,
  inFlight: number | undefined,
  envoys: number,
): Pick<SnapshotEngine, 'busyAbove'> {
  if (use === undefined || inFlight === undefined) return {};
  const used = Math.min(1, use.rho);
  const share = (used * use.own) / use.all + (1 - used) / use.users;
  const part = (inFlight * share) / envoys;
  const above = part + Math.max(BUSY_SHARE * part, BUSY_SIGMA * Math.sqrt(part));
  return { busyAbove: Number(above.toPrecision(3)) };
}

/** Indexes of the engines that the frontend can reach, the nearest first. */
function nearestOf(fleet: Fleet, frontendId: string): number[] {
  const seconds = networkOf(fleet, frontendId);
  return fleet.engines
    .map((_, index) => index)
    .filter((index) => Number.isFinite(seconds[index]))
    .sort((a, b) => seconds[a]! - seconds[b]! || a - b);
}

function networkOf(fleet: Fleet, frontendId: string): readonly number[] {
  return fleet.networkSeconds[fleet.frontends.findIndex(({ id }) => id === frontendId)] ?? [];
}

/** Whether a path can be sent as it is. */
function isVisible(path: string): boolean {
  return path.length <= MAX_NAME_BYTES && /^[\x21-\x7e]+$/.test(path);
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
  const named = new Map(served.map((model) => [model.name, model]));
  const aliases = (fleet.aliases ?? []).map(({ name, model }) => ({ ...named.get(model)!, name }));
  return [...served, ...aliases].sort(byName);
}

function snapshotPool(
  pool: Pool,
  row: PlanRow | undefined,
  indexes: ReadonlyMap<string, number>,
  priorities: readonly number[],
  hasReplica: boolean,
): SnapshotPool {
  const eligible = new Set(pool.engineIds);
  // Where there is nobody at all, the filter is to say so, and not that all are at their limit.
  const shedOf = (priority: number) => (hasReplica ? shedFraction(current, priority) : 0);
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
    shedFraction: shedOf(DEFAULT_PRIORITY),
    ...(priorities.length > 1 && {
      otherClasses: priorities
        .filter((priority) => priority !== DEFAULT_PRIORITY)
        .map(
          (priority): SnapshotClass => ({
            priority,
            retryRatio: current?.retryRatio ?? 0,
            shedFraction: shedOf(priority),
          }),
        ),
    }),
  };
}

/**
 * What the plan sheds of a priority. One that the plan knows no demand of is shed as a whole while a more important one is
 * shed at all.
 */
function shedFraction(row: PlanRow | undefined, priority: number): number {
  if (row === undefined) return 0;
  const entry = row.shed.find((one) => one.priority === priority);
  if (entry !== undefined) return entry.fraction;
  return row.shed.some((one) => one.priority > priority && one.fraction > 0) ? 1 : 0;
}
