import type { Signals } from '../signals/signals.js';
import type { LiveConfig } from './live-config.js';

/** A first plan waits this long for every replica to be probed. */
const PROBES_WAIT_MS = 1_500;
/** It waits this long for replicas that nobody knows. After that, one pool that cannot be found leaves no other without a plan. */
const DISCOVERY_WAIT_MS = 30_000;

/** What is waited for before anything is published. */
export class FirstPlan {
  readonly #live: LiveConfig;
  readonly #signals: Pick<Signals, 'health'>;
  readonly #startedAtMs: number;

  constructor(live: LiveConfig, signals: Pick<Signals, 'health'>, startedAtMs: number) {
    this.#live = live;
    this.#signals = signals;
    this.#startedAtMs = startedAtMs;
  }

  /** Whether it is not known yet who could serve a pool: Envoys that have something would lose it. */
  isUndiscovered(nowMs: number): boolean {
    return nowMs - this.#startedAtMs < DISCOVERY_WAIT_MS && this.#live.isUndiscovered;
  }

  /** Whether replicas were not probed yet. */
  isUnprobed(nowMs: number): boolean {
    if (nowMs - this.#startedAtMs >= PROBES_WAIT_MS) return false;
    return this.#live.current.fleet.engines.some(({ endpoints }) =>
      endpoints.some((address) => this.#signals.health(address, nowMs).state === 'unknown'),
    );
  }
}
