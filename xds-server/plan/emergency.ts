import { effectiveCapacity, type FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import type { Profile } from '../profiles/profile.js';
import { EngineWork } from './engine-work.js';
import { handOver } from './partition/hand-over.js';
import type { Plan, PlanEngine, PlanRow } from './plan.js';
import { identifying } from './plan-id.js';
import { pooledUtilization, retryRatio } from './protection/retry-ratio.js';
import type { Steps } from './steps.js';
import { Usability } from './usability.js';

export interface EmergencyInput {
  /** The last good plan. */
  readonly previous: Plan;
  readonly state: FleetState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
  readonly createdAtMs: number;
}

/**
 * The last good plan with the segments of engines that died since handed to their backups, for the time that no new
 * plan can be had: a solve failed or its plan did not pass the checks. Returns `previous` itself while all of its
 * engines can serve. Loads and retry ratios are those of the new weights; shed fractions, prices and the objective
 * stay, as only a solve can tell better ones. A step is a row.
 */
export function* handingOver({
  previous,
  state,
  profiles,
  policy,
  createdAtMs,
}: EmergencyInput): Steps<Plan> {
  const usability = new Usability(state);
  const pools = new Map(state.fleet.pools.map(({ id, engineIds }) => [id, engineIds]));
  const handedOver: PlanRow[] = [];
  for (const row of previous.rows) {
    const candidates = pools.get(row.poolId) ?? [];
    handedOver.push(handOver(row, candidates, (id) => usability.canServe(row.frontendId, row.poolId, id)));
    yield;
  }
  if (handedOver.every((row, index) => row === previous.rows[index])) return previous;

  const loads = new EngineWork(state, profiles).loads(handedOver);
  const engines = engineEntries(state, loads, previous);
  const utilizations = new Map(
    [...pools].map(([id, engineIds]) => {
      const eligible = new Set(engineIds);
      return [id, pooledUtilization(engines.filter(({ engineId }) => eligible.has(engineId)))];
    }),
  );
  const rows = handedOver.map((row) => {
    const utilization = utilizations.get(row.poolId) ?? pooledUtilization([]);
    return {
      ...row,
      retryRatio: retryRatio(utilization, policy.maxUtilization, policy.retries, row.retryRatio),
    };
  });
  const content = { rows, engines, objectiveSeconds: previous.objectiveSeconds };
  const id = yield* identifying(content);
  return { id, sequence: previous.sequence + 1, createdAtMs, ...content };
}

/** Loads as they are now, by these; prices as they were, as only a solve knows others. */
export function engineEntries(
  { engines }: FleetState,
  loads: ReadonlyMap<string, number>,
  previous: Plan | null,
): PlanEngine[] {
  const known = new Map(previous?.engines.map((engine) => [engine.engineId, engine]));
  return engines.map((engine): PlanEngine => {
    const capacity = effectiveCapacity(engine);
    return {
      engineId: engine.id,
      effectiveCapacity: capacity,
      rho: capacity > 0 ? (loads.get(engine.id) ?? 0) / capacity : 0,
      congestionPriceSeconds: known.get(engine.id)?.congestionPriceSeconds ?? 0,
      scarcityPriceSeconds: known.get(engine.id)?.scarcityPriceSeconds ?? 0,
    };
  });
}
