import type { FleetState } from '../../fleet/fleet-state.js';

/**
 * Least time between two solves for changes of demand, of requests' sizes and pauses, and of the network; changes of supply
 * do not wait, nor for idle solves.
 */
const DEMAND_INTERVAL_MS = 1_000;
/** Conditions that hold make moves cheaper, so there is something to solve even when nothing changes. */
const IDLE_INTERVAL_MS = 10_000;
const FIRST_RETRY_MS = 2_000;
const LONGEST_RETRY_MS = 10_000;

/** What a solve is made for. */
interface Reason {
  /** Configuration and readiness. */
  readonly supply: string;
  /** Rates, sizes and pauses, which all move only when they leave their bands. */
  readonly demand: string;
  /** Round trips; another array when any has moved. */
  readonly network: FleetState['fleet']['networkSeconds'];
}

/** Decides when there is something to solve. */
export class SolveSchedule {
  #last: Reason | undefined;
  #lastAtMs = 0;
  /** When a solve last began for another reason than that time has passed. */
  #movedAtMs = Number.NEGATIVE_INFINITY;
  #failures = 0;

  /** Whether anything was solved yet, well or not. */
  get hasBegun(): boolean {
    return this.#last !== undefined;
  }

  /** `generation` grows with every configuration. */
  isDue(generation: number, state: FleetState, nowMs: number): boolean {
    if (this.#last === undefined) return true;
    const reason = reasonOf(generation, state);
    const sinceMs = nowMs - this.#lastAtMs;
    if (reason.supply !== this.#last.supply) return true;
    if (this.#failures > 0) {
      return sinceMs >= Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (this.#failures - 1));
    }
    const isMoved = !isSame(reason, this.#last);
    if (isMoved) return nowMs - this.#movedAtMs >= DEMAND_INTERVAL_MS;
    return sinceMs >= IDLE_INTERVAL_MS;
  }

  begin(generation: number, state: FleetState, nowMs: number): void {
    const reason = reasonOf(generation, state);
    if (this.#last === undefined || !isSame(reason, this.#last)) this.#movedAtMs = nowMs;
    this.#last = reason;
    this.#lastAtMs = nowMs;
  }

  end(isGood: boolean): void {
    this.#failures = isGood ? 0 : this.#failures + 1;
  }
}

function isSame(a: Reason, b: Reason): boolean {
  return a.supply === b.supply && a.demand === b.demand && a.network === b.network;
}

function reasonOf(generation: number, { fleet, engines, demands }: FleetState): Reason {
  return {
    supply: JSON.stringify([generation, engines, fleet.pools.map(({ lastResortIds }) => lastResortIds)]),
    demand: JSON.stringify(
      demands.map((demand) => [
        demand.requestsPerSecond,
        demand.isUnheard,
        demand.promptTokens,
        demand.uncachedPromptTokens,
        demand.outputTokens,
        demand.turnGapSeconds,
      ]),
    ),
    network: fleet.networkSeconds,
  };
}
