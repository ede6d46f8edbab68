import { endOfCurves } from '../../profiles/curves.js';
import type { Profile } from '../../profiles/profile.js';
import type { ReferenceMix } from '../solution.js';

/**
 * Seconds per request that a request adds for others on an engine at its hard limit, rising in a straight line from 0
 * at the target utilisation: more than any detour on Earth, so that no engine runs above its target while a reachable
 * one is below its own.
 */
export const SOFT_LIMIT_SECONDS = 10;

/**
 * Seconds per request and utilisation that every engine costs at least. Twenty microseconds decide nothing but ties:
 * among engines that are as good as each other, the load is even.
 */
export const EVEN_LOAD_SECONDS = 2e-5;

/**
 * Just below the hard limit the value of capacity rises, in a straight line, to more than any detour can be worth. What
 * capacity is worth at a full engine (its scarcity price) then follows from the load as any other price does, instead of
 * hanging in the air. The width is a share of the limit; the height is in seconds per request, plus a multiple of the price
 * at the limit, for requests that take hours. Beyond the limit it rises on, as much again for each percent, so that a search may start from an overload and finds the way out if there is one.
 */
const WALL_WIDTH = 2e-6;
const WALL_SECONDS = 3e3;
const WALL_PRICES = 10;
const OVERLOAD_WIDTH = 0.01;

/** A Newton step this small in utilisation leaves an error in the last bits only. */
const LAST_STEP = 3e-9;

export interface Limits {
  /** Cost rises steeply above it. */
  readonly target: number;
  /** Never exceeded. */
  readonly max: number;
}

/**
 * What load costs on one engine, per replica of effective capacity and in user-seconds per second:
 * `rho * D(rho)` plus the steep part above the target. D is the queueing delay, of first and later tokens, of the
 * requests that make up one replica-second of work at the reference mix. Strictly convex, once differentiable.
 * Its derivative is the price of work: user-seconds per replica-second.
 *
 * Fields begin as numbers, so that they are never anything else: read from fields that begin undefined, numbers are put
 * in boxes on their way into loops, of which a solve would make several hundred thousand.
 */
export class Congestion {
  readonly max: number = 0;
  /** The price rises steeply from here on. */
  readonly target: number = 0;
  /** Worth of work at the hard limit. */
  readonly maxWorth: number = 0;
  /** Derivative of the worth beyond the hard limit. */
  readonly overloadSlope: number = 0;
  readonly #wall: number = 0;
  readonly #wallPrice: number = 0;
  readonly #wallSlope: number = 0;
  readonly #queue: number = 0;
  readonly #tokens: number = 0;
  readonly #kappa: number = 0;
  readonly #even: number = 0;
  readonly #soft: number = 0;
  readonly #end: number = 0;
  readonly #endPrice: number = 0;

  constructor(profile: Profile, mix: ReferenceMix, latencyFactor: number, limits: Limits) {
    const requests = mix.requestsPerWorkSecond;
    const laterTokens = Math.max(0, mix.outputTokensPerWorkSecond - requests);
    this.max = limits.max;
    this.#queue = latencyFactor * requests * profile.ttft.queueSeconds;
    this.#tokens = latencyFactor * laterTokens * profile.tbot.baseSeconds;
    this.#kappa = profile.tbot.kappa;
    this.#even = requests * EVEN_LOAD_SECONDS;
    this.target = limits.target;
    this.#soft =
      limits.max > limits.target ? (requests * SOFT_LIMIT_SECONDS) / (limits.max - limits.target) : 0;
    this.#end = endOfCurves(profile);
    this.#endPrice = this.#curvePrice(this.#end);
    this.#wall = limits.max * (1 - WALL_WIDTH);
    this.#wallPrice = this.price(this.#wall);
    const height = requests * WALL_SECONDS + WALL_PRICES * this.#wallPrice;
    this.#wallSlope = height / (limits.max - this.#wall);
    this.overloadSlope = height / OVERLOAD_WIDTH;
    this.maxWorth = this.#wallPrice + height;
  }

  /** Cost at this utilisation. */
  cost(rho: number): number {
    const at = Math.min(rho, this.#end);
    const above = Math.max(0, rho - this.target);
    return (
      this.#curve(at) +
      this.#curvePrice(at) * (rho - at) +
      0.5 * this.#even * rho * rho +
      0.5 * this.#soft * above * above
    );
  }

  /** Derivative of the cost: what one more replica-second of work adds to everybody's latency. */
  price(rho: number): number {
    const at = Math.min(rho, this.#end);
    return this.#curvePrice(at) + this.#even * rho + this.steepPrice(rho);
  }

  /** Part of the price that is no delay but steers away from utilisations above the target. */
  steepPrice(rho: number): number {
    return this.#soft * Math.max(0, rho - this.target);
  }

  /** Price, and close to the hard limit the scarcity of capacity on top. */
  worth(rho: number): number {
    if (rho <= this.#wall) return this.price(rho);
    if (rho <= this.max) return this.#wallPrice + this.#wallSlope * (rho - this.#wall);
    return this.maxWorth + this.overloadSlope * (rho - this.max);
  }

  /** Derivative of `worth`. */
  worthSlope(rho: number): number {
    if (rho <= this.#wall) return this.#slope(rho);
    return rho <= this.max ? this.#wallSlope : this.overloadSlope;
  }

  /**
   * Both at once: the utilisation that a list begins with gives way to the worth, followed by the slope. A number handed
   * over in a list needs no box, of which a solve would make a few hundred thousand.
   */
  noteWorth(noted: Float64Array): void {
    const rho = noted[0]!;
    if (rho > this.#wall) {
      noted[0] = this.worth(rho);
      noted[1] = this.worthSlope(rho);
      return;
    }
    const above = rho - this.target;
    let price = this.#endPrice;
    let slope = above > 0 ? this.#even + this.#soft : this.#even;
    if (rho < this.#end) {
      const queue = 1 / (1 - rho);
      const crowd = 1 / (1 - this.#kappa * rho);
      price = this.#queue * (queue * queue - 1) + this.#tokens * (crowd * crowd - 1);
      slope += 2 * (this.#queue * queue * queue * queue + this.#tokens * this.#kappa * crowd * crowd * crowd);
    }
    price += this.#even * rho;
    noted[0] = above > 0 ? price + this.#soft * above : price;
    noted[1] = slope;
  }

  /** Utilisation at which work is worth this much; a good guess saves steps. */
  rhoAt(worth: number, guess: number): number {
    if (worth <= this.#wallPrice) return this.#inverse(worth, guess, this.#wall);
    if (worth <= this.maxWorth) return this.#wall + (worth - this.#wallPrice) / this.#wallSlope;
    return this.max + (worth - this.maxWorth) / this.overloadSlope;
  }

  /** Least value of `cost(rho) - price * rho` over 0..max. */
  dual(price: number): number {
    const rho = this.#inverse(price, 0.5 * this.max, this.max);
    return this.cost(rho) - price * rho;
  }

  /**
   * Utilisation in 0..top at which the price is `price`. Newton steps inside a shrinking bracket: exact to the last bits
   * in a handful of steps. Most of a solve's time is spent here, so `price` and `#slope` are written out together.
   */
  #inverse(price: number, guess: number, top: number): number {
    if (price <= 0) return 0;
    if (price >= this.price(top)) return top;
    let low = 0;
    let high = top;
    let rho = guess > low && guess < high ? guess : 0.5 * high;
    for (let step = 0; step < 100; step++) {
      let excess = this.#even * rho - price;
      let slope = this.#even;
      if (rho < this.#end) {
        const queue = 1 / (1 - rho);
        const crowd = 1 / (1 - this.#kappa * rho);
        const queuePart = this.#queue * queue * queue;
        const crowdPart = this.#tokens * crowd * crowd;
        excess += queuePart + crowdPart - this.#queue - this.#tokens;
        slope += 2 * (queuePart * queue + crowdPart * this.#kappa * crowd);
      } else {
        excess += this.#endPrice;
      }
      if (rho > this.target) {
        excess += this.#soft * (rho - this.target);
        slope += this.#soft;
      }
      if (excess > 0) high = rho;
      else low = rho;
      const newton = rho - excess / slope;
      const change = Math.abs(newton - rho);
      if (newton > low && newton < high) {
        rho = newton;
        if (change <= LAST_STEP) break;
      } else {
        if (change <= Number.EPSILON) break;
        rho = 0.5 * (low + high);
      }
    }
    return rho;
  }

  /** Derivative of the price. */
  #slope(rho: number): number {
    let slope = rho > this.target ? this.#even + this.#soft : this.#even;
    if (rho < this.#end) {
      const queue = 1 / (1 - rho);
      const crowd = 1 / (1 - this.#kappa * rho);
      slope += 2 * (this.#queue * queue * queue * queue + this.#tokens * this.#kappa * crowd * crowd * crowd);
    }
    return slope;
  }

  /** `rho` times the delay at it. */
  #curve(rho: number): number {
    return (
      (this.#queue * rho * rho) / (1 - rho) +
      (this.#tokens * this.#kappa * rho * rho) / (1 - this.#kappa * rho)
    );
  }

  /** Derivative of the curve; that of `k rho^2 / (1 - k rho)` is `1 / (1 - k rho)^2 - 1`. */
  #curvePrice(rho: number): number {
    const queue = 1 / (1 - rho);
    const crowd = 1 / (1 - this.#kappa * rho);
    return this.#queue * (queue * queue - 1) + this.#tokens * (crowd * crowd - 1);
  }
}
