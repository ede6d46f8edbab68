import type { EngineState, FleetState } from '../fleet/fleet-state.js';
import type { Plan } from '../plan/plan.js';
import { readState } from '../plan/state-file/state-salvage.js';
import { whyUnfit } from '../plan/why-unfit.js';
import type { Followed } from './peers.js';

/** The plan of another control server, as it is to be published here. */
export interface FollowedPlan {
  readonly plan: Plan;
  readonly salt: string;
}

/** Whether a plan fits a fleet, whose engines are another list whenever anything else of it is another. */
interface Look {
  readonly plan: Plan;
  readonly engines: FleetState['fleet']['engines'];
  readonly unfitReason: string | null;
}

/** Takes over the plans of a control server that leads. */
export class PlanFollower {
  #state = '';
  #read: FollowedPlan | undefined;
  /** To look anew at every tick would take all the time there is in large fleets. */
  #look: Look | undefined;
  #unfitReason: string | null = null;

  /** Why the last plan cannot be published for the fleet here; null when it can. */
  get unfitReason(): string | null {
    return this.#unfitReason;
  }

  /** Its plan, if it has one that can be published for this fleet. */
  planFor({ state: text }: Followed, state: FleetState): FollowedPlan | undefined {
    if (text !== this.#state) this.#read = this.#readPlan(text);
    if (this.#read === undefined) return undefined;
    const { plan } = this.#read;
    const { engines } = state.fleet;
    if (this.#look?.plan !== plan || this.#look.engines !== engines) {
      this.#look = { plan, engines, unfitReason: whyUnfit(plan, state) ?? null };
    }
    this.#unfitReason = this.#look.unfitReason;
    return this.#unfitReason === null ? this.#read : undefined;
  }

  #readPlan(text: string): FollowedPlan | undefined {
    this.#state = text;
    this.#unfitReason = null;
    try {
      const { plan, salt } = readState(text).state;
      if (plan === null) return undefined;
      // The same plan stays the same object, so that nobody takes it for another one.
      return this.#read?.plan.id === plan.id && this.#read.salt === salt ? this.#read : { plan, salt };
    } catch (error) {
      this.#unfitReason = `it cannot be read: ${(error as Error).message}`;
      return undefined;
    }
  }
}

/** How engines look to the control server that leads; replicas that it does not know as they look here. */
export function asFollowed(
  own: readonly EngineState[],
  followed: readonly EngineState[],
): readonly EngineState[] {
  const byId = new Map(followed.map((engine) => [engine.id, engine]));
  return own.map((engine) => {
    const there = byId.get(engine.id);
    if (there === undefined) return engine;
    const ready = new Map(there.replicas.map((replica) => [replica.address, replica.ready]));
    const replicas = engine.replicas.map(({ address, ready: here }) => ({
      address,
      ready: ready.get(address) ?? here,
    }));
    return { ...there, replicas };
  });
}
