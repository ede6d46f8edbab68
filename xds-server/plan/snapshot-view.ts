import { MAX_NAME_BYTES } from '../../wire/layout.js';
import type {
  SnapshotClass,
  SnapshotEngine,
  SnapshotModel,
  SnapshotNeed,
  SnapshotPool,
  SnapshotReplica,
  SnapshotSegment,
  SnapshotView,
} from '../../wire/snapshot-view.js';
import { byName } from '../collections.js';
import type { Fleet, Pool } from '../fleet/fleet.js';
import type { EngineState } from '../fleet/fleet-state.js';
import { prioritiesOf } from '../fleet/priority-class.js';
import { rowKey } from '../fleet/row-key.js';
import { handOver } from './partition/hand-over.js';
import type { Plan, PlanRow } from './plan.js';
import { noRelief, type Relief } from './protection/relief.js';

/** What the views of all frontends are made of. */
export interface SnapshotViewsInput {
  readonly plan: Plan;
  readonly fleet: Fleet;
  /** Round trips in force, where they are others than those of the fleet; by frontend and engine. */
  readonly networkSeconds?: Fleet['networkSeconds'];
  /** Engine states now, which may be newer than the plan. */
  readonly engines: readonly EngineState[];
  readonly version: number;
  readonly salt: string;
  readonly issuedAtMs: number;
  /** 0..1 share of keys that are steered; all when absent. */
  readonly steered?: number;
  /** How engines are relieved for now; absent when none is. */
  readonly relief?: Relief;
}

export interface SnapshotViewInput extends SnapshotViewsInput {
  readonly frontendId: string;
}

/** Priority of requests that ask for none. */
const DEFAULT_PRIORITY = 0;
/** In the id of the need that stands for a class; no part of a need's own. */
const CLASS_MARK = 'class/';

/** What one frontend's filters need of a plan; see `SnapshotViews`. */
export function buildSnapshotView(input: SnapshotViewInput): SnapshotView {
  return new SnapshotViews(input).of(input.frontendId);
}

/**
 * What each frontend's filters need of a plan; what frontends have in common is made once. Engines are those of the fleet, with their
 * replicas' readiness of now. A pool that the plan does not know yet, or that nobody can serve, has no segments. The plan may be older
 * than the fleet: segments of engines that are no longer eligible go to their backups.
 */
export class SnapshotViews {
  readonly #input: SnapshotViewsInput;
  readonly #relief: Relief;
  readonly #needs: readonly SnapshotNeed[];
  readonly #models: readonly SnapshotModel[];
  readonly #priorities: readonly number[];
  /** By the ids of frontend and pool. */
  readonly #rows: ReadonlyMap<string, PlanRow>;
  readonly #indexes: ReadonlyMap<string, number>;
  readonly #states: ReadonlyMap<string, EngineState>;
  readonly #replicas: readonly (readonly SnapshotReplica[])[];
  readonly #uses: ReadonlyMap<string, Use>;

  constructor(input: SnapshotViewsInput) {
    const { plan, fleet, engines, relief = noRelief } = input;
    const { needs = [], classes = [] } = fleet;
    this.#input = input;
    this.#relief = relief;
    this.#needs = [
      ...needs.map(({ id, when }) => ({ id, when })),
      ...classes.map(({ id, when }) => ({ id: CLASS_MARK + id, when })),
    ];
    this.#models = models(fleet);
    this.#priorities = prioritiesOf(fleet);
    this.#rows = new Map(plan.rows.map((row) => [rowKey(row), row]));
    this.#indexes = new Map(fleet.engines.map(({ id }, index) => [id, index]));
    this.#states = new Map(engines.map((engine) => [engine.id, engine]));
    this.#replicas = fleet.engines.map(({ id }) => replicasOf(this.#states.get(id), relief));
    this.#uses = usesOf(plan);
  }

  of(frontendId: string): SnapshotView {
    const { plan, fleet, version, issuedAtMs, salt, steered = 1 } = this.#input;
    const { networkSeconds = fleet.networkSeconds } = this.#input;
    const { classes = [] } = fleet;
    const firstClass = this.#needs.length - classes.length;
    return {
      version,
      planId: plan.id,
      issuedAtMs,
      frontendId,
      salt,
      ...(steered < 1 && { steered }),
      models: this.#models,
      pools: fleet.pools.map((pool) => this.#pool(frontendId, pool)),
      engines: this.#engines(frontendId),
      ...(this.#needs.length > 0 && { needs: this.#needs }),
      ...(classes.length > 0 && {
        classRules: classes.map(({ priority }, index) => ({ need: firstClass + index, priority })),
      }),
      nearest: nearestOf({ ...fleet, networkSeconds }, frontendId),
    };
  }

  #pool(frontendId: string, pool: Pool): SnapshotPool {
    const hasReplica = pool.engineIds.some((id) => (this.#states.get(id)?.replicas.length ?? 0) > 0);
    const row = this.#rows.get(rowKey({ frontendId, poolId: pool.id }));
    return snapshotPool(pool, row, this.#indexes, this.#priorities, hasReplica);
  }

  #engines(frontendId: string): SnapshotEngine[] {
    const { fleet } = this.#input;
    const { engines, limits, full, envoys } = this.#relief;
    const network = networkOf(fleet, frontendId);
    const isMeasured = (engine: number) => fleet.measuresNetwork === true && Number.isFinite(network[engine]);
    return fleet.engines.map(
      ({ id, healthPath }, index): SnapshotEngine => ({
        id,
        ...(isMeasured(index) && isVisible(healthPath) && { probePath: healthPath }),
        ...(engines.has(id) && { overflow: engines.get(id)! }),
        ...(limits.has(id) && { replicaLimit: limits.get(id)! }),
        ...busyAbove(this.#uses.get(id), frontendId, full.get(id), envoys.get(frontendId) ?? 1),
        replicas: this.#replicas[index]!,
      }),
    );
  }
}

/** Without a relief of any of them the very list of the state, by which others know it again. */
function replicasOf(state: EngineState | undefined, { replicas }: Relief): readonly SnapshotReplica[] {
  const list = state?.replicas ?? [];
  if (replicas.size === 0 || !list.some(({ address }) => replicas.has(address))) return list;
  return list.map((replica) =>
    replicas.has(replica.address) ? { ...replica, overflow: replicas.get(replica.address)! } : replica,
  );
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
  /** Requests per second from all frontends, and by the id of each that sends any. */
  all: number;
  readonly own: Map<string, number>;
}

/** By the id of engines that the plan sends requests. */
function usesOf({ rows, engines }: Plan): ReadonlyMap<string, Use> {
  const rhos = new Map(engines.map(({ engineId, rho }) => [engineId, rho]));
  const uses = new Map<string, Use>();
  for (const { frontendId, demandRps, weights } of rows) {
    for (const { engineId, weight } of weights) {
      const flow = demandRps * weight;
      if (flow === 0) continue;
      const use = uses.get(engineId) ?? { rho: rhos.get(engineId) ?? 1, all: 0, own: new Map() };
      uses.set(engineId, use);
      use.all += flow;
      use.own.set(frontendId, (use.own.get(frontendId) ?? 0) + flow);
    }
  }
  return uses;
}

/**
 * An Envoy's part is that of its frontend: of what the plan uses of the engine, as its flows are shared out, and of what it leaves
 * idle, an equal one to each frontend that it sends there. So a frontend that asked for next to nothing may begin to send.
 * Nobody is busy whom the plan gives nothing.
 */
function busyAbove(
  use: Use | undefined,
  frontendId: string,
  inFlight: number | undefined,
  envoys: number,
): Pick<SnapshotEngine, 'busyAbove'> {
  const own = use?.own.get(frontendId);
  if (use === undefined || own === undefined || inFlight === undefined) return {};
  const used = Math.min(1, use.rho);
  const share = (used * own) / use.all + (1 - used) / use.own.size;
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
