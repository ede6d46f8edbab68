import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { EngineState, FleetState } from '../fleet/fleet-state.js';
import type { Relief } from '../plan/protection/relief.js';
import { asFollowed, type FollowedPlan, PlanFollower } from './followed-plan.js';
import type { LiveState } from './peer-news.js';
import type { Followed, Peers } from './peers.js';

/** A plan of the leading control server that does not fit here is waited on for this long: configurations may be changing. */
const UNFIT_MS = 10_000;

export interface FollowingOptions {
  readonly peers: Peers;
  readonly log: Pick<Logger, 'info'>;
  /** How the fleet looks here. */
  readonly state: () => FleetState;
  /** How this server would relieve engines. */
  readonly ownRelief: () => Relief;
  /** Id and salt of what is published; undefined when it has to be published anew. */
  readonly inForce: () => { readonly planId: string | undefined; readonly salt: string } | undefined;
  /** A plan of another control server is to be published. */
  readonly onPlan: (plan: FollowedPlan, from: string) => void;
  /** Engines are relieved in another way. */
  readonly onRelief: () => void;
}

/** Which control server makes the plans, and what follows from it here. */
export class Following {
  readonly #options: FollowingOptions;
  readonly #follower = new PlanFollower();
  #isPlanning = false;
  /** How things are at the control server whose plan is published. */
  #live: LiveState | undefined;
  #unfitSinceMs: number | undefined;

  constructor(options: FollowingOptions) {
    this.#options = options;
  }

  /** Whether this server makes the plans that it publishes. */
  get isPlanning(): boolean {
    return this.#isPlanning;
  }

  /** Whether engines are shown and relieved as another control server says. */
  get isFollowing(): boolean {
    return this.#live !== undefined;
  }

  /** Why the plan of the leading control server cannot be published here; null when it is. */
  get unfitReason(): string | null {
    return this.#unfitSinceMs === undefined ? null : this.#follower.unfitReason;
  }

  get relief(): Relief {
    return this.#live?.relief ?? this.#options.ownRelief();
  }

  /** Engines as snapshots are to show them. */
  get engines(): readonly EngineState[] {
    const { engines } = this.#options.state();
    return this.#live === undefined ? engines : asFollowed(engines, this.#live.engines);
  }

  /** Decides before anything is published. */
  begin(nowMs: number): void {
    this.#isPlanning = this.#options.peers.decide(nowMs);
  }

  /** Decides who makes the plans; those of another control server are published here. */
  look(nowMs: number): void {
    const { peers, log } = this.#options;
    const leads = peers.decide(nowMs);
    if (peers.isAlone) {
      this.#isPlanning = leads;
      return;
    }
    const { followed, leader } = peers;
    if (leads || followed === undefined) {
      this.#unfitSinceMs = undefined;
      this.#setLive(undefined);
    } else this.#take(followed, nowMs);
    const isUnfit = this.#unfitSinceMs !== undefined && nowMs - this.#unfitSinceMs >= UNFIT_MS;
    const isPlanning = leads || isUnfit;
    if (isPlanning === this.#isPlanning) return;
    const who = isPlanning ? 'this control server makes the plans now' : 'another one makes the plans now';
    log.info({ leader, reason: this.unfitReason }, who);
    this.#isPlanning = isPlanning;
  }

  #take(followed: Followed, nowMs: number): void {
    const { state, inForce, onPlan } = this.#options;
    const read = this.#follower.planFor(followed, state());
    if (read === undefined) {
      if (this.#follower.unfitReason !== null) this.#unfitSinceMs ??= nowMs;
      if (this.#isPlanning) this.#setLive(undefined);
      return;
    }
    this.#unfitSinceMs = undefined;
    const now = inForce();
    const isSame = now?.planId === read.plan.id && now.salt === read.salt;
    this.#setLive(followed.live);
    if (!isSame) onPlan(read, followed.address);
  }

  #setLive(live: LiveState | undefined): void {
    const before = this.relief;
    this.#live = live;
    if (!isDeepStrictEqual(before, this.relief)) this.#options.onRelief();
  }
}
