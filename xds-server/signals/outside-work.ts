import type { Profile, TokenMix } from '../profiles/profile.js';
import { rhoOf } from './load-by-profile.js';

/** Readings of which the median counts: about 16 s, so that neither a burst nor a late report is taken for a change. */
const READINGS = 8;
/** Fewer requests from outside than this, or than this share of all, are noise: reports and pages are not of one moment. */
const NOISE_REQUESTS = 3;
const NOISE_SHARE = 0.15;
/** With fewer requests of ours at the engine, they do not tell how long a request takes. */
const ENOUGH_OURS = 5;
const LEAST_HEALTH = 0.1;
/** Health moves when it is off by this much, and in steps of this size. */
const DEAD_BAND = 0.1;
const STEP = 0.05;

/** One look at an engine. */
export interface LoadReading {
  /** Requests running and waiting on all its replicas, by its own account. */
  readonly requests: number;
  /** Requests that Wardrop's frontends have at it. */
  readonly ours: number;
  /** Utilisation by what frontends send. */
  readonly ourRho: number;
  readonly replicas: number;
}

/** What is known about work that reaches an engine without passing Wardrop. */
export interface OutsideView {
  readonly requests: number;
  /** Utilisation that they cause. */
  readonly rho: number;
}

/**
 * Work that an engine gets from elsewhere is missing from its capacity. Requests are turned into utilisation by
 * Little's law: requests at the engine are proportional to the rate at which they arrive, if they take equally long.
 */
export class OutsideWork {
  #readings: { readonly requests: number; readonly rho: number }[] = [];
  #health = 1;

  /** 0.1..1, share of the engine's capacity that is left for Wardrop. */
  get health(): number {
    return this.#health;
  }

  /** Undefined before there were enough readings. */
  get view(): OutsideView | undefined {
    if (this.#readings.length < READINGS) return undefined;
    return {
      requests: median(this.#readings.map(({ requests }) => requests)),
      rho: median(this.#readings.map(({ rho }) => rho)),
    };
  }

  /** Takes one look; without looks everything stays as it is. */
  accept(reading: LoadReading, profile: Profile, mix: TokenMix): void {
    const rho = outsideRho(reading, profile, mix);
    if (rho === undefined) return;
    this.#readings.push({ requests: Math.max(0, reading.requests - reading.ours), rho });
    if (this.#readings.length > READINGS) this.#readings.shift();
    const { view } = this;
    if (view === undefined) return;
    const target = Math.max(LEAST_HEALTH, 1 - Math.round(view.rho / STEP) * STEP);
    if (Math.abs(target - this.#health) >= DEAD_BAND || target === 1) this.#health = target;
  }
}

/** Utilisation caused from outside; undefined when nothing can be said. */
function outsideRho(reading: LoadReading, profile: Profile, mix: TokenMix): number | undefined {
  const { requests, ours, ourRho, replicas } = reading;
  const outside = requests - ours;
  if (replicas === 0) return undefined;
  if (outside < Math.max(NOISE_REQUESTS, NOISE_SHARE * requests)) return 0;
  if (ours >= ENOUGH_OURS && ourRho > 0) return Math.min(1, (ourRho * outside) / ours);
  const rho = rhoOf(requests / replicas, profile, mix);
  return rho === undefined ? undefined : (rho * outside) / requests;
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;
}
