import { Random } from '../../simulator/random.js';
import { TICK_MS } from '../../xds-server/control/ticker.js';
import { larger, type Move } from '../../xds-server/signals/demand/demand-band.js';
import { DemandEstimator } from '../../xds-server/signals/demand/demand-estimator.js';
import { URGENT_STRENGTH } from '../../xds-server/signals/demand/surge.js';
import { HOLD_MS, URGENT_HOLD_MS } from '../../xds-server/sync/hold.js';
import { type Traffic, type TrafficKind, traffics } from './traffic.js';

/** How a rate moved. */
export interface Moved {
  readonly atMs: number;
  readonly move: Move;
  /** Requests per second of each pool from then on. */
  readonly rates: readonly number[];
}

/** What flows through a frontend. */
export interface Flow {
  readonly traffic: TrafficKind;
  /** Of all pools together; each has the same. */
  readonly requestsPerSecond: number;
  readonly pools: number;
}

export interface Rise {
  readonly factor: number;
  /** How many of the pools rise; default all. */
  readonly risen?: number;
}

const START_MS = 1_600_000_000_000;
const STEP_MS = 50;

/** One frontend of one Envoy, whose filter reports as it would; there is no machine and no network. */
export class Frontend {
  moves: Moved[] = [];
  /** Of each pool. */
  readonly #rate: number;
  readonly #traffic: readonly Traffic[];
  readonly #estimator: DemandEstimator;
  #nowMs = START_MS;
  readonly #counted = new Map<string, number>();
  #reportedMs = START_MS;
  #reportAtMs: number;
  #lookAtMs: number;

  constructor({ traffic, requestsPerSecond, pools }: Flow, seed: number) {
    const random = new Random(seed, `${traffic} ${requestsPerSecond}`);
    this.#rate = requestsPerSecond / pools;
    this.#traffic = Array.from({ length: pools }, () => traffics[traffic](random));
    this.#estimator = new DemandEstimator(
      this.#traffic.map((_, pool) => ({
        frontendId: 'f',
        poolId: `p${pool}`,
        requestsPerSecond: this.#rate,
        evidence: Infinity,
        source: 'expected',
      })),
    );
    this.#reportAtMs = START_MS + HOLD_MS * random.unit();
    this.#lookAtMs = START_MS + TICK_MS * random.unit();
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /**
   * Lets traffic flow, of the first `risen` pools at `factor` times the rate, until a move for which `isEnough`, if one
   * comes.
   */
  advance(
    seconds: number,
    { factor, risen = this.#traffic.length }: Rise = { factor: 1 },
    isEnough: (moved: Moved) => boolean = () => false,
  ): Moved | undefined {
    const endMs = this.#nowMs + seconds * 1_000;
    while (this.#nowMs < endMs) {
      this.#nowMs += STEP_MS;
      this.#traffic.forEach((traffic, pool) => {
        const count = traffic(this.#rate * (pool < risen ? factor : 1), STEP_MS / 1_000);
        this.#counted.set(`p${pool}`, (this.#counted.get(`p${pool}`) ?? 0) + count);
      });
      if (this.#nowMs >= this.#reportAtMs) this.#report();
      if (this.#nowMs < this.#lookAtMs) continue;
      const moved = this.#look();
      if (moved !== undefined && isEnough(moved)) return moved;
    }
    return undefined;
  }

  #report(): void {
    this.#estimator.add('f', 'node', this.#counted, this.#reportedMs, this.#nowMs);
    this.#counted.clear();
    this.#reportedMs = this.#nowMs;
    const strength = this.#estimator.surgeStrength('f', this.#nowMs);
    this.#reportAtMs = this.#nowMs + (strength >= URGENT_STRENGTH ? URGENT_HOLD_MS : HOLD_MS);
    if (strength >= 1) this.#lookAtMs = this.#nowMs;
  }

  #look(): Moved | undefined {
    this.#lookAtMs = this.#nowMs + TICK_MS;
    const moves = [...this.#estimator.evaluate(this.#nowMs).values()];
    const move = moves.reduce(larger, undefined);
    if (move === undefined) return undefined;
    const rates = this.#estimator.estimates(this.#nowMs).map(({ requestsPerSecond }) => requestsPerSecond);
    const moved = { atMs: this.#nowMs, move, rates };
    this.moves.push(moved);
    return moved;
  }
}
