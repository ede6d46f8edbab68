import { WardropError } from '../../errors.js';
import type { OptimizerInput, WhatChanged } from '../../optimizer/index.js';
import type { Plan, PlanRow } from '../../plan/plan.js';

/** A plan that was put in force, and what it was solved from; its solution is a function of that. */
export interface PastPlan {
  readonly sequence: number;
  readonly planId: string;
  readonly createdAtMs: number;
  readonly input: OptimizerInput;
  readonly rows: readonly Pick<PlanRow, 'frontendId' | 'poolId' | 'weights' | 'isPlain'>[];
  /** Why it was not solved for; null when it was. */
  readonly failure: string | null;
}

/** What changed between two plans, and why. */
export interface Changed extends WhatChanged {
  readonly since: NamedPlan;
  readonly until: NamedPlan;
}

export type NamedPlan = Pick<PastPlan, 'sequence' | 'planId' | 'createdAtMs'>;

const MOST_PLANS = 1_000;
/** 20 plans of 64 frontends and 1000 engines, while every round trip is measured anew. */
const MOST_BYTES = 25e6;

/** The latest plans that this process put in force: fewer of a large fleet, but always two. */
export class PlanHistory {
  readonly #plans: { readonly plan: PastPlan; readonly bytes: number }[] = [];
  #bytes = 0;

  add({ sequence, id, createdAtMs, rows }: Plan, input: OptimizerInput, failure: string | null): void {
    const plan: PastPlan = {
      ...{ sequence, planId: id, createdAtMs, input, failure },
      // Without the partitions, which are most of a plan.
      rows: rows.map(({ segments: _segments, former: _former, ...row }) => row),
    };
    const bytes = bytesOf(plan);
    this.#plans.push({ plan, bytes });
    this.#bytes += bytes;
    while (this.#plans.length > 2 && (this.#plans.length > MOST_PLANS || this.#bytes > MOST_BYTES)) {
      this.#bytes -= this.#plans.shift()!.bytes;
    }
  }

  /**
   * The plan with this number or id and the latest one; when none is named, the latest two.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  since(name: string | undefined): readonly [before: PastPlan, after: PastPlan] {
    const after = this.#plans.at(-1)?.plan;
    const before = name === undefined ? this.#plans.at(-2)?.plan : this.find(name);
    if (before !== undefined && after !== undefined) return [before, after];
    throw this.notKept(name);
  }

  /** The latest plan with this number or id. */
  find(name: string): PastPlan | undefined {
    return this.#plans.findLast(({ plan }) => isNamed(plan, name))?.plan;
  }

  /** The plan that followed this one. */
  after(plan: PastPlan): PastPlan | undefined {
    const at = this.#plans.findLastIndex((kept) => kept.plan === plan);
    return at < 0 ? undefined : this.#plans[at + 1]?.plan;
  }

  /**
   * What to say to who asks for a plan that is not kept, or for the one before the first.
   *
   * @param elsewhere where it may be found
   */
  notKept(name: string | undefined, elsewhere = ''): WardropError {
    const first = this.#plans.at(0)?.plan;
    const last = this.#plans.at(-1)?.plan;
    const kept = first === undefined || last === undefined ? 'none' : `${named(first)} to ${named(last)}`;
    return new WardropError(
      'WARDROP_QUERY_INVALID',
      name === undefined
        ? 'there is no earlier plan since the control server started'
        : `plan ${name} is not kept; kept: ${kept}${elsewhere}`,
    );
  }
}

/** Whether this is the form of a plan's number or id. */
export function isPlanName(text: string): boolean {
  return /^(\d{1,15}|[0-9a-f]{16})$/.test(text);
}

/** Whether somebody who gives a number or an id means this plan. Ids are longer than numbers get. */
export function isNamed({ sequence, planId }: NamedPlan, name: string): boolean {
  return planId === name || String(sequence) === name;
}

/** A plan as it is named in answers. */
export function named({ sequence, planId, createdAtMs }: NamedPlan): string {
  return `${sequence} (${planId}, ${new Date(createdAtMs).toISOString()})`;
}

/** What is kept of a plan alone, roughly, as measured: round trips, demands, engines, weights before and after. */
function bytesOf({ input, rows }: PastPlan): number {
  const { fleet, engines, demands } = input.state;
  const weights = rows.reduce((sum, row) => sum + row.weights.length, 0);
  return (
    12 * fleet.frontends.length * engines.length + 200 * demands.length + 350 * engines.length + 120 * weights
  );
}
