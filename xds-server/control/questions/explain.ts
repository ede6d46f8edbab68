import { WardropError } from '../../errors.js';
import type { Fleet } from '../../fleet/fleet.js';
import { knownId, knownPoolId } from '../../fleet/known-id.js';
import { eligibleIds } from '../../fleet/last-resort.js';
import {
  type ExplainedPair,
  type Explanation,
  explain,
  type OptimizerInput,
  type Solution,
} from '../../optimizer/index.js';
import type { Plan } from '../../plan/plan.js';
import type { CapacityView } from '../../signals/capacity/measured-capacity.js';
import type { Signals } from '../../signals/signals.js';
import type { NamedPlan, PastPlan } from '../planning/plan-history.js';

/** What somebody wants explained; ids come from outside and may be missing or wrong. */
export interface ExplainQuery {
  readonly frontend?: string | undefined;
  /** May be left out where the engine is in one pool only. */
  readonly pool?: string | undefined;
  readonly engine?: string | undefined;
  /** Number or id of the plan that gave the weight; the plan in force where it is left out. */
  readonly plan?: string | undefined;
}

/** An explanation, and how it relates to the plan in force, or to the plan that was named. */
export interface Explained {
  readonly planId: string | null;
  readonly solvedAtMs: number;
  /** Why there is no newer solve, or why the plan that was named was not solved for; null when it was good. */
  readonly failure: string | null;
  /** What the plan gives the engine: plans keep what differs too little to move conversations for. */
  readonly weightInForce: number | null;
  /** Whether no solve found the weights of the row in the plan. */
  readonly isPlain: boolean;
  /** What is configured where the round trip is measured; null where the configured one counts, and of a past plan. */
  readonly configuredNetworkSeconds: number | null;
  /** What the engine was measured to be able to do; null of a past plan, too. */
  readonly capacity: CapacityView | null;
  /** The plan that was named, with when the next one was made; null when none was. */
  readonly past: (NamedPlan & { readonly nextAtMs: number | null }) | null;
  readonly explanation: Explanation;
}

/**
 * The weight that a query is about.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function explainedPair({ frontend, pool, engine }: ExplainQuery, fleet: Fleet): ExplainedPair {
  const frontendId = knownId('frontend', frontend, fleet.frontends);
  const engineId = knownId('engine', engine, fleet.engines);
  if (pool !== undefined) return { frontendId, poolId: knownPoolId(pool, fleet), engineId };
  const serving = fleet.pools.filter((each) => eligibleIds(each).includes(engineId));
  const onlyPool = serving.length === 1 ? serving[0]!.id : undefined;
  return { frontendId, poolId: knownId('pool', onlyPool, serving), engineId };
}

/** What an explanation is made of. */
export interface ExplainSource {
  readonly input: OptimizerInput;
  readonly solution: Solution;
  /** The last plan; null before the first. */
  readonly plan: Plan | null;
  /** Why there is no newer solve; null when the last one was good. */
  readonly failure: string | null;
  readonly signals: Pick<Signals, 'correctedNetworkSeconds'>;
  readonly capacities: readonly CapacityView[];
}

/**
 * Why a weight is what it is, by the last good solve.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID, or WARDROP_NOT_READY of what came after that solve
 */
export function explainSolved(query: ExplainQuery, source: ExplainSource): Explained {
  const { input, solution, plan, failure, signals, capacities } = source;
  refuseYounger(query, source);
  const pair = explainedPair(query, input.state.fleet);
  const row = rowOf(plan?.rows ?? [], pair);
  return {
    planId: plan?.id ?? null,
    solvedAtMs: input.state.atMs,
    failure,
    weightInForce: row === undefined ? null : weightIn(row, pair),
    isPlain: row?.isPlain === true,
    configuredNetworkSeconds: signals.correctedNetworkSeconds(pair.frontendId, pair.engineId) ?? null,
    capacity: capacities.find(({ engineId }) => engineId === pair.engineId) ?? null,
    past: null,
    explanation: explain(input, solution, pair),
  };
}

/** A plan whose solve failed has plain weights for what is new, and there is nothing to explain them by. */
function refuseYounger(
  { frontend, pool, engine }: ExplainQuery,
  { input, plan, failure }: ExplainSource,
): void {
  const { frontends, pools, engines } = input.state.fleet;
  const rows = plan?.rows ?? [];
  const parts = [
    ['frontend', frontend, frontends, rows.map(({ frontendId }) => frontendId)],
    ['pool', pool, pools, rows.map(({ poolId }) => poolId)],
    ['engine', engine, engines, rows.flatMap(({ weights }) => weights.map(({ engineId }) => engineId))],
  ] as const;
  for (const [kind, id, solved, planned] of parts) {
    if (id === undefined || solved.some((each) => each.id === id) || !planned.includes(id)) continue;
    const why = failure === null ? '' : ` (${failure})`;
    const text = `${kind} ${JSON.stringify(id)} is newer than the last solve that succeeded${why}; its weights are plain until one does`;
    throw new WardropError('WARDROP_NOT_READY', text);
  }
}

/**
 * Why a weight was what it was under a plan of the past.
 *
 * @param solution what its input comes to when it is solved again
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function explainPast(
  query: ExplainQuery,
  { input, rows, failure, ...plan }: PastPlan,
  solution: Solution,
  next: Pick<NamedPlan, 'createdAtMs'> | undefined,
): Explained {
  const pair = explainedPair(query, input.state.fleet);
  const row = rowOf(rows, pair);
  return {
    planId: plan.planId,
    solvedAtMs: input.state.atMs,
    failure,
    weightInForce: row === undefined ? null : weightIn(row, pair),
    isPlain: row?.isPlain === true,
    configuredNetworkSeconds: null,
    capacity: null,
    past: { ...plan, nextAtMs: next?.createdAtMs ?? null },
    explanation: explain(input, solution, pair),
  };
}

function rowOf(rows: PastPlan['rows'], pair: ExplainedPair): PastPlan['rows'][number] | undefined {
  return rows.find((row) => row.frontendId === pair.frontendId && row.poolId === pair.poolId);
}

function weightIn({ weights }: PastPlan['rows'][number], pair: ExplainedPair): number {
  return weights.find(({ engineId }) => engineId === pair.engineId)?.weight ?? 0;
}
