import { WardropError } from '../../errors.js';
import { makePlan, type PlanSolver } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import { isNamed, named } from '../planning/plan-history.js';
import type { Recorded, RecordedSolve } from '../recording/recording.js';
import { type Explained, type ExplainQuery, explainPast } from './explain.js';

/**
 * Why a weight was what it was under a plan of a recording.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID for names that the recording does not have; WARDROP_RECORDING_INVALID
 */
export async function explainRecorded(
  solver: PlanSolver,
  recording: AsyncIterable<Recorded>,
  query: ExplainQuery & { readonly plan: string },
): Promise<Explained> {
  const { made, next } = await madeAs(query.plan, recording);
  const times = [...made.times];
  const again = await makePlan(solver, made.input, () => times.shift() ?? 0);
  const { input, solution } = again;
  if (solution === undefined) throw again.failure!;
  const { id: planId, sequence, createdAtMs, rows } = made.plan;
  const unlike = again.plan?.id === planId ? null : 'made again, it would be another plan';
  const failure = made.failure ?? unlike;
  return explainPast(query, { planId, sequence, createdAtMs, rows, input, failure }, solution, next);
}

interface Made {
  /** The last solve that put such a plan in force; the first that left it there where it began before the recording. */
  readonly made: RecordedSolve & { readonly plan: Plan };
  readonly next: Plan | undefined;
}

async function madeAs(name: string, recording: AsyncIterable<Recorded>): Promise<Made> {
  let found: Made | undefined;
  let first: Plan | undefined;
  let last: Plan | undefined;
  for await (const recorded of recording) {
    if (recorded.kind !== 'solve' || recorded.plan === null) continue;
    const { plan } = recorded;
    const isNew = plan.sequence !== last?.sequence;
    if (isNew && found?.made.plan.sequence === last?.sequence) found = found && { ...found, next: plan };
    if (isNew && isNamed({ ...plan, planId: plan.id }, name))
      found = { made: { ...recorded, plan }, next: undefined };
    first ??= plan;
    last = plan;
  }
  if (found !== undefined) return found;
  const nameOf = (plan: Plan) => named({ ...plan, planId: plan.id });
  const held = first === undefined || last === undefined ? 'no plan' : `${nameOf(first)} to ${nameOf(last)}`;
  throw new WardropError('WARDROP_QUERY_INVALID', `plan ${name} is not in the recording, which has ${held}`);
}
