import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { FollowedPlan } from '../../peers/followed-plan.js';
import type { Following } from '../../peers/following.js';
import type { Plan } from '../../plan/plan.js';
import { whyUnfit } from '../../plan/why-unfit.js';
import type { SignalsView } from '../../signals/signals.js';
import type { FirstPlan } from '../planning/first-plan.js';
import type { Planning } from '../planning/planning.js';
import type { Publication, Publisher } from './publisher.js';

export interface PlanInForceOptions {
  readonly planning: Pick<Planning, 'adopt' | 'plan'>;
  readonly following: Pick<Following, 'engines'>;
  readonly publisher: Pick<Publisher, 'publish'>;
  readonly firstPlan: Pick<FirstPlan, 'isUndiscovered'>;
  /** How the fleet looks. */
  readonly view: () => SignalsView;
  /** Of the hash of keys, until a plan of another control server is taken. */
  readonly salt: string;
  readonly onPublished: () => void;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  readonly now: () => number;
}

/** What is published: a plan that was saved, made here, or made by another control server, for the fleet as it looks. */
export class PlanInForce {
  readonly #options: PlanInForceOptions;
  #salt: string;
  #isPublished = false;
  /** Undefined until a plan is published, and again until one is for another configuration. */
  #publication: Publication | undefined;

  constructor(options: PlanInForceOptions) {
    this.#options = options;
    this.#salt = options.salt;
  }

  /** Once it is published; that of an older configuration until there is one for the present one. */
  get plan(): Plan | null {
    return this.#isPublished ? this.#options.planning.plan : null;
  }

  get isPublished(): boolean {
    return this.#isPublished;
  }

  get salt(): string {
    return this.#salt;
  }

  /** What is published for the present configuration. */
  get publication(): Publication | undefined {
    return this.#publication;
  }

  /** Goes on with the plan of before the start, when it can serve the fleet of now. */
  takeSaved(): void {
    const { planning, firstPlan, view, log, now } = this.#options;
    const { plan } = planning;
    if (plan === null || firstPlan.isUndiscovered(now())) return;
    const { id: planId, sequence } = plan;
    const reason = whyUnfit(plan, view().state);
    if (reason !== undefined) {
      log.warn({ planId, sequence, reason }, 'the saved plan does not fit; waiting for a new one');
      return;
    }
    log.info({ planId, sequence }, 'going on with the saved plan');
    this.#publish(plan);
  }

  /** Takes a plan that was made here. */
  takeMade(plan: Plan): void {
    // The same plan still has to be published for another fleet.
    if (plan !== this.#publication?.plan) this.#publish(plan);
  }

  /** Takes a plan of another control server. */
  takeFollowed({ plan, salt }: FollowedPlan, from: string): void {
    const { planning, firstPlan, log, now } = this.#options;
    if (!this.#isPublished && firstPlan.isUndiscovered(now())) return;
    if (planning.plan?.id !== plan.id) {
      const { id: planId, sequence } = plan;
      log.info({ planId, sequence, from }, 'a plan of another control server is in force');
    }
    planning.adopt(plan);
    this.#salt = salt;
    this.#publish(plan);
  }

  /** Publishes the same plan again when engines look different. */
  refresh(): void {
    if (this.#publication === undefined) return;
    const { plan, engines } = this.#publication;
    if (!isDeepStrictEqual(engines, this.#options.following.engines)) this.#publish(plan);
  }

  /** The configuration is another one: whatever plan comes next is to be published for it. */
  outdate(): void {
    this.#publication = undefined;
  }

  #publish(plan: Plan): void {
    const { following, publisher, view, onPublished } = this.#options;
    const { configuredFleet: fleet, state } = view();
    const { engines } = following;
    this.#publication = { plan, fleet, networkSeconds: state.fleet.networkSeconds, engines };
    this.#isPublished = true;
    publisher.publish(this.#publication);
    onPublished();
  }
}
