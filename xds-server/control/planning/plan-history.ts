import { WardropError } from '../../errors.js';
import type { OptimizerInput, WhatChanged } from '../../optimizer/index.js';
import type { Plan } from '../../plan/plan.js';

/** A plan that was put in force, and what it was solved from. */
export interface PastPlan {
  readonly sequence: number;
  readonly planId: string;
  readonly createdAtMs: number;
  readonly input: OptimizerInput;
}

/** What changed between two plans, and why. */
export interface Changed extends WhatChanged {
  readonly since: Omit<PastPlan, 'input'>;
  readonly until: Omit<PastPlan, 'input'>;
}

const KEPT = 20;

/** The latest plans that this process put in force. */
export class PlanHistory {
  readonly #plans: PastPlan[] = [];

  add({ sequence, id, createdAtMs }: Plan, input: OptimizerInput): void {
    this.#plans.push({ sequence, planId: id, createdAtMs, input });
    if (this.#plans.length > KEPT) this.#plans.shift();
  }

  /**
   * The plan with this number and the latest one; without a number, the latest two.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  since(sequence: number | undefined): readonly [before: PastPlan, after: PastPlan] {
    const after = this.#plans.at(-1);
    const before =
      sequence === undefined ? this.#plans.at(-2) : this.#plans.find((plan) => plan.sequence === sequence);
    if (before !== undefined && after !== undefined) return [before, after];
    const known = this.#plans.map((plan) => plan.sequence).join(', ') || 'none';
    throw new WardropError(
      'WARDROP_QUERY_INVALID',
      `${sequence === undefined ? 'there is no earlier plan' : `plan ${sequence} is not kept`}; known: ${known}`,
    );
  }
}
