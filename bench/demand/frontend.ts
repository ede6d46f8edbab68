import { Random } from '../../simulator/random.js';
import type { Move } from '../../xds-server/signals/demand-band.js';
import { DemandEstimator } from '../../xds-server/signals/demand-estimator.js';
import { URGENT_STRENGTH } from '../../xds-server/signals/surge.js';
import { type Traffic, type TrafficKind, traffics } from './traffic.js';

/** How a rate moved. */
export interface Moved {
  readonly atMs: number;
  readonly move: Move;
  readonly requestsPerSecond: number;
}

const START_MS = 1_600_000_000_000;
const STEP_MS = 50;
/** As the control server does it: it holds a call for so long, or so long when a surge is near, and looks so often. */
const HOLD_MS = 500;
const URGENT_HOLD_MS = 100;
const LOOK_MS = 200;

/** One frontend of one Envoy and one pool, whose filter reports as it would; there is no machine and no network. */
export class Frontend {
  moves: Moved[] = [];
  readonly #rate: number;
  readonly #traffic: Traffic;
  readonly #estimator: DemandEstimator;
  #nowMs = START_MS;
  #counted = 0;
  #reportedMs = START_MS;
  #reportAtMs: number;
  #lookAtMs: number;

  constructor(kind: TrafficKind, requestsPerSecond: number, seed: number) {
    const random = new Random(seed, `${kind} ${requestsPerSecond}`);
    this.#rate = requestsPerSecond;
    this.#traffic = traffics[kind](random);
    this.#estimator = new DemandEstimator([
      { frontendId: 'f', poolId: 'p', requestsPerSecond, evidence: Infinity, source: 'expected' },
    ]);
    this.#reportAtMs = START_MS + HOLD_MS * random.unit();
    this.#lookAtMs = START_MS + LOOK_MS * random.unit();
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Lets traffic flow at `factor` times the rate, until a move for which `isEnough`, if one comes. */
  advance(seconds: number, factor = 1, isEnough: (moved: Moved) => boolean = () => false): Moved | undefined {
    const endMs = this.#nowMs + seconds * 1_000;
    while (this.#nowMs < endMs) {
      this.#nowMs += STEP_MS;
      this.#counted += this.#traffic(this.#rate * factor, STEP_MS / 1_000);
      if (this.#nowMs >= this.#reportAtMs) this.#report();
      if (this.#nowMs < this.#lookAtMs) continue;
      const moved = this.#look();
      if (moved !== undefined && isEnough(moved)) return moved;
    }
    return undefined;
  }

  #report(): void {
    this.#estimator.add('f', 'node', new Map([['p', this.#counted]]), this.#reportedMs, this.#nowMs);
    this.#counted = 0;
    this.#reportedMs = this.#nowMs;
    const strength = this.#estimator.surgeStrength('f', this.#nowMs);
    this.#reportAtMs = this.#nowMs + (strength >= URGENT_STRENGTH ? URGENT_HOLD_MS : HOLD_MS);
    if (strength >= 1) this.#lookAtMs = this.#nowMs;
  }

  #look(): Moved | undefined {
    this.#lookAtMs = this.#nowMs + LOOK_MS;
    const move = this.#estimator.evaluate(this.#nowMs);
    if (move === undefined) return undefined;
    const { requestsPerSecond } = this.#estimator.estimates(this.#nowMs)[0]!;
    const moved = { atMs: this.#nowMs, move, requestsPerSecond };
    this.moves.push(moved);
    return moved;
  }
}
