import { makePlan, type PlanSolver } from '../../plan/make-plan.js';
import type { Recorded, RecordedSolve } from './recording.js';
import { damaged, SignalsReplay } from './signals-replay.js';

export interface Replayed {
  readonly atMs: number;
  readonly sequence: number | null;
  readonly planId: string | null;
  /** Whether the plan is the recorded one, byte for byte. */
  readonly isSame: boolean;
  /** Whether signals came to the recorded state again; null when it is not known what they knew at the beginning. */
  readonly isSameState: boolean | null;
  /** Why the recorded solve failed, and why it does now; null where it did not. */
  readonly failedThen: string | null;
  readonly failedNow: string | null;
}

/** Everything of a recording again: what signals made of what they were told, and the plan of every solve. */
export async function* replayAll(
  solver: PlanSolver,
  recording: AsyncIterable<Recorded>,
): AsyncGenerator<Replayed> {
  const signals = new SignalsReplay();
  for await (const recorded of recording) {
    if (recorded.kind !== 'solve') signals.accept(recorded);
    else {
      const isSameState = signals.isSame(recorded.input.state) ?? null;
      yield { ...(await replay(solver, recorded)), isSameState };
    }
  }
}

/**
 * Makes the plan of a recorded solve again.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID for a solve that lacks something
 */
export async function replay(
  solver: PlanSolver,
  { input, times, plan, failure }: RecordedSolve,
): Promise<Omit<Replayed, 'isSameState'>> {
  let asked = 0;
  const now = () => times[Math.min(asked++, times.length - 1)]!;
  const { atMs } = input.state;
  const outcome = await makePlan(solver, input, now).catch((error) => {
    throw damaged({ kind: 'solve', atMs }, error);
  });
  return {
    atMs,
    sequence: outcome.plan?.sequence ?? null,
    planId: outcome.plan?.id ?? null,
    isSame: JSON.stringify(outcome.plan) === JSON.stringify(plan),
    failedThen: failure ?? null,
    failedNow: outcome.failure?.message ?? null,
  };
}
