import { WardropError } from '../../errors.js';
import { type OptimizerInput, whatChanged } from '../../optimizer/index.js';
import type { Solver } from '../../plan/make-plan.js';
import type { Changed, PastPlan, PlanHistory } from '../planning/plan-history.js';
import { type Headroom, headroom } from './headroom.js';
import { type Changes, type WhatIf, whatIf } from './what-if.js';

export interface QuestionsOptions {
  /** Not the one that makes plans, so that questions never delay one. */
  readonly solver: Solver;
  readonly history: Pick<PlanHistory, 'since'>;
  /** What a plan would be made of now; throws WARDROP_NOT_READY before there is one. */
  readonly input: () => OptimizerInput;
}

/** Answers what operators ask by solving again, one question at a time: each may take many solves. Changes nothing. */
export class Questions {
  readonly #options: QuestionsOptions;
  #isAsked = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /** Solves the live state with changes. */
  whatIf(changes: Changes): Promise<WhatIf> {
    return this.#ask((input) => whatIf(this.#options.solver, input, changes));
  }

  /** Which input changed which weight since the plan with this number; by default, since the one before. */
  async changes(sequence: number | undefined): Promise<Changed> {
    const [before, after] = this.#options.history.since(sequence);
    const { effects, weights } = await this.#ask(() =>
      whatChanged(this.#options.solver, before.input, after.input),
    );
    const named = ({ input: _input, ...plan }: PastPlan) => plan;
    return { since: named(before), until: named(after), effects, weights };
  }

  headroom(): Promise<Headroom> {
    return this.#ask((input) => headroom(this.#options.solver, input));
  }

  async #ask<T>(answer: (input: OptimizerInput) => Promise<T>): Promise<T> {
    const input = this.#options.input();
    if (this.#isAsked) {
      throw new WardropError('WARDROP_BUSY', 'another question is being answered; ask again');
    }
    this.#isAsked = true;
    try {
      return await answer(input);
    } finally {
      this.#isAsked = false;
    }
  }
}
