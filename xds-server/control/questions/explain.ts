import type { Fleet } from '../../fleet/fleet.js';
import { knownId } from '../../fleet/known-id.js';
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

/** What somebody wants explained; ids come from outside and may be missing or wrong. */
export interface ExplainQuery {
  readonly frontend?: string | undefined;
  /** May be left out where the engine is in one pool only. */
  readonly pool?: string | undefined;
  readonly engine?: string | undefined;
}

/** An explanation, and how it relates to the plan in force. */
export interface Explained {
  readonly planId: string | null;
  readonly solvedAtMs: number;
  /** Why there is no newer solve; null when the last one was good. */
  readonly failure: string | null;
  /** What the plan in force gives the engine: plans keep what differs too little to move conversations for. */
  readonly weightInForce: number | null;
  /** Whether no solve found the weights in force of the row. */
  readonly isPlain: boolean;
  /** What is configured where the round trip is measured; null where the configured one counts. */
  readonly configuredNetworkSeconds: number | null;
  /** What the engine was measured to be able to do. */
  readonly capacity: CapacityView | null;
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
  if (pool !== undefined) return { frontendId, poolId: knownId('pool', pool, fleet.pools), engineId };
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
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function explainSolved(query: ExplainQuery, source: ExplainSource): Explained {
  const { input, solution, plan, failure, signals, capacities } = source;
  const pair = explainedPair(query, input.state.fleet);
  const row = plan?.rows.find(
    ({ frontendId, poolId }) => frontendId === pair.frontendId && poolId === pair.poolId,
  );
  return {
    planId: plan?.id ?? null,
    solvedAtMs: input.state.atMs,
    failure,
    weightInForce:
      row?.weights.find(({ engineId }) => engineId === pair.engineId)?.weight ?? (row ? 0 : null),
    isPlain: row?.isPlain === true,
    configuredNetworkSeconds: signals.correctedNetworkSeconds(pair.frontendId, pair.engineId) ?? null,
    capacity: capacities.find(({ engineId }) => engineId === pair.engineId) ?? null,
    explanation: explain(input, solution, pair),
  };
}
