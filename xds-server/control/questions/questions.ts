import { WardropError } from '../../errors.js';
import { type OptimizerInput, whatChanged } from '../../optimizer/index.js';
import type { Following } from '../../peers/following.js';
import type { Peers } from '../../peers/peers.js';
import { plainRowsText } from '../../plan/fallback.js';
import type { Solver } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import type { SignalsView } from '../../signals/signals.js';
import { type Changed, isNamed, type NamedPlan } from '../planning/plan-history.js';
import type { Planning } from '../planning/planning.js';
import {
  type Explained,
  type ExplainQuery,
  type ExplainSource,
  explainPast,
  explainSolved,
} from './explain.js';
import { type Headroom, headroom } from './headroom.js';
import { type Changes, type WhatIf, whatIf } from './what-if.js';

export interface QuestionsOptions {
  /** Not the one that makes plans, so that questions never delay one. */
  readonly solver: Solver;
  readonly planning: Pick<Planning, 'failure' | 'history' | 'plan' | 'solved'>;
  readonly following: Pick<Following, 'isPlanning'>;
  readonly peers: Pick<Peers, 'leader'>;
  readonly signals: ExplainSource['signals'];
  /** How the fleet looks. */
  readonly view: () => Pick<SignalsView, 'capacities'>;
  /** What a plan would be made of now; throws WARDROP_NOT_READY before there is one. */
  readonly input: () => OptimizerInput;
}

/** Where explanations of plans that are not kept may be found; changes between plans are not. */
const IN_RECORDINGS = '; a recording may have it (wardrop explain --recording)';

/** Answers what operators ask; by solving again, one question at a time: each may take many solves. Changes nothing. */
export class Questions {
  readonly #options: QuestionsOptions;
  #isAsked = false;

  constructor(options: QuestionsOptions) {
    this.#options = options;
  }

  /**
   * Why a weight is what it is, by the last good solve, or why it was what it was under the plan that is named.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID or WARDROP_NOT_READY
   */
  async explain(query: ExplainQuery): Promise<Explained> {
    const { signals, view, solver } = this.#options;
    const { solved, plan, failure, history } = this.#ownPlans();
    const past = query.plan === undefined ? undefined : history.find(query.plan);
    if (past !== undefined) {
      const solution = await this.#ask(() => solver.solve({ ...past.input, isTrial: true }));
      return explainPast(query, past, solution, history.after(past));
    }
    // One from before the start or of another control server may be in force still.
    const isInForce = plan !== null && isNamed({ ...plan, planId: plan.id }, query.plan ?? plan.id);
    if (query.plan !== undefined && !isInForce) throw history.notKept(query.plan, IN_RECORDINGS);
    if (solved === undefined) throw new WardropError('WARDROP_NOT_READY', whyUnsolved(plan, failure));
    return explainSolved(query, { ...solved, plan, failure, signals, capacities: view().capacities });
  }

  /** Solves the live state with changes. */
  whatIf(changes: Changes): Promise<WhatIf> {
    return this.#ask((input) => whatIf(this.#options.solver, input, changes));
  }

  /** Which input changed which weight since the plan with this number or id; by default, since the one before. */
  async changes(since: string | undefined): Promise<Changed> {
    const [before, after] = this.#ownPlans().history.since(since);
    const { effects, weights } = await this.#ask(() =>
      whatChanged(this.#options.solver, before.input, after.input),
    );
    return { since: nameOf(before), until: nameOf(after), effects, weights };
  }

  headroom(): Promise<Headroom> {
    return this.#ask((input) => headroom(this.#options.solver, input));
  }

  /**
   * What was planned here.
   *
   * @throws {WardropError} WARDROP_NOT_READY when another control server makes the plans
   */
  #ownPlans(): QuestionsOptions['planning'] {
    const { planning, following, peers } = this.#options;
    if (following.isPlanning) return planning;
    const who =
      peers.leader === undefined ? 'another control server' : `the control server at ${peers.leader}`;
    throw new WardropError('WARDROP_NOT_READY', `${who} makes the plans; ask its admin API for the reasons`);
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

function whyUnsolved(plan: Plan | null, failure: string | null): string {
  const plain = plan && plainRowsText(plan);
  return ['nothing is solved yet', failure, plain].filter(Boolean).join('; ');
}

function nameOf({ sequence, planId, createdAtMs }: NamedPlan): NamedPlan {
  return { sequence, planId, createdAtMs };
}
