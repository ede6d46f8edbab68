import { makePlan, type Solver } from './planner.js';
import type { RecordedSolve } from './recording.js';

export interface Replayed {
  readonly atMs: number;
  readonly sequence: number | null;
  readonly planId: string | null;
  /** Whether the plan is the recorded one, byte for byte. */
  readonly isSame: boolean;
}

/** Makes the plan of a recorded solve again. */
export async function replay(solver: Solver, { input, times, plan }: RecordedSolve): Promise<Replayed> {
  let asked = 0;
  const nowMs = () => times[Math.min(asked++, times.length - 1)]!;
  const outcome = await makePlan(solver, { ...input, nowMs });
  return {
    atMs: input.state.atMs,
    sequence: outcome.plan?.sequence ?? null,
    planId: outcome.plan?.id ?? null,
    isSame: JSON.stringify(outcome.plan) === JSON.stringify(plan),
  };
}
