import type { PlanInput } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import type { RecordedSignal } from './recorded-signals.js';

/** One solve: all that went in, and the plan that should be in force after it. */
export interface RecordedSolve {
  readonly kind: 'solve';
  readonly input: PlanInput;
  /** What the clock said whenever planning asked. */
  readonly times: readonly number[];
  readonly plan: Plan | null;
  /** Why the plan is not by this solve; absent when it is, and from recordings of versions that did not tell. */
  readonly failure?: string;
}

export type Recorded = RecordedSolve | RecordedSignal;
