import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../config/config.js';
import type { PlanInput } from '../plan/make-plan.js';
import type { Plan } from '../plan/plan.js';
import { noRelief, type Relief } from '../plan/protection/relief.js';
import { type LoadSources, loadAt } from '../signals/pages/engine-load.js';
import type { Signals, SignalsView } from '../signals/signals.js';
import { SolveSchedule } from './planning/solve-schedule.js';
import { withTrickle } from './planning/trickle.js';
import { ReliefWatch } from './relief/relief-watch.js';

const LOADS_INTERVAL_MS = 2_000;
const RELIEF_INTERVAL_MS = 1_000;

/** What a look at the fleet goes by. */
export interface Seen {
  readonly config: Config;
  readonly signals: Signals;
  readonly loads: LoadSources;
}

/**
 * What is done with signals at every tick, and when, apart from sockets and clocks: the control server and the simulator
 * go through the same. The order is `passLoads`, `look`, and, when something is due, a plan of `planInput`.
 */
export class ControlCycle {
  readonly schedule = new SolveSchedule();
  readonly #reliefWatch = new ReliefWatch();
  #relief: Relief = noRelief;
  #loadsAtMs = Number.NEGATIVE_INFINITY;
  #reliefAtMs = Number.NEGATIVE_INFINITY;

  /** How engines are relieved for now. */
  get relief(): Relief {
    return this.#relief;
  }

  /** Tells signals how many requests engines say they have, as often as they are asked. */
  passLoads({ config, signals, loads }: Seen, nowMs: number): void {
    if (nowMs - this.#loadsAtMs < LOADS_INTERVAL_MS) return;
    this.#loadsAtMs = nowMs;
    for (const engine of config.fleet.engines) {
      const up = engine.endpoints.filter((address) => signals.health(address, nowMs).state !== 'down');
      const load = loadAt(up, loads, nowMs);
      if (load !== undefined) signals.acceptLoad(engine, load.requests, up.length, nowMs, load.leastWaiting);
    }
  }

  /**
   * Looks after engines with too much in flight, between plans; true when the relief is another. `envoys` share the limits,
   * by the id of their frontend.
   */
  relieve(
    { config, signals, loads }: Seen,
    view: SignalsView,
    envoys: ReadonlyMap<string, number>,
    nowMs: number,
  ): boolean {
    if (nowMs - this.#reliefAtMs < RELIEF_INTERVAL_MS) return false;
    this.#reliefAtMs = nowMs;
    const relief = this.#reliefWatch.update({
      config,
      mixes: view.mixes,
      state: view.state,
      inFlight: signals.inFlight(nowMs),
      replicasInFlight: signals.replicasInFlight(nowMs),
      capacities: view.capacities,
      outside: new Map([...view.outside].map(([id, { requests }]) => [id, requests])),
      loads,
      envoys,
      nowMs,
    });
    if (isDeepStrictEqual(relief, this.#relief)) return false;
    this.#relief = relief;
    return true;
  }

  /** Whether there is something to plan for. With a plan in force, nothing is planned for a fleet that nobody hears of. */
  isDue(generation: number, view: SignalsView, hasPlan: boolean, nowMs: number): boolean {
    return !(hasPlan && view.isBlind) && this.schedule.isDue(generation, view.state, nowMs);
  }
}

/** What the next plan is made of. */
export function planInput(
  { profiles, policy }: Pick<Config, 'profiles' | 'policy'>,
  { state }: Pick<SignalsView, 'state'>,
  previous: Plan | null,
): PlanInput {
  return { previous, state, profiles, policy: withTrickle(policy, state) };
}
