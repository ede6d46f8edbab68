import type { Address } from '../../fleet/fleet.js';
import { isSuspect } from '../../signals/readiness/replica-health.js';
import type { Signals } from '../../signals/signals.js';
import type { LiveConfig } from '../live-config/live-config.js';

/** A first plan waits this long for every replica to be probed. */
const PROBES_WAIT_MS = 1_500;
/** It waits this long for replicas that nobody knows. After that, one pool that cannot be found leaves no other without a plan. */
const DISCOVERY_WAIT_MS = 30_000;

/** What is waited for before anything is published. */
export class FirstPlan {
  readonly #live: LiveConfig;
  readonly #signals: Pick<Signals, 'health'>;
  readonly #startedAtMs: number;
  /** Probed since the start: what is restored of health may be out of date. */
  readonly #probed = new Set<Address>();

  constructor(live: LiveConfig, signals: Pick<Signals, 'health'>, startedAtMs: number) {
    this.#live = live;
    this.#signals = signals;
    this.#startedAtMs = startedAtMs;
  }

  /** Whether it is not known yet who could serve a pool: Envoys that have something would lose it. */
  isUndiscovered(nowMs: number): boolean {
    return nowMs - this.#startedAtMs < DISCOVERY_WAIT_MS && this.#live.isUndiscovered;
  }

  noteProbe(address: Address, nowMs: number): void {
    if (this.#waitsForProbes(nowMs)) this.#probed.add(address);
  }

  /** Whether it is not known yet which replicas are up: of some there is no probe, or one that has to be confirmed. */
  isUnprobed(nowMs: number): boolean {
    if (!this.#waitsForProbes(nowMs)) return false;
    return this.#live.current.fleet.engines.some(({ endpoints }) =>
      endpoints.some((address) => {
        const health = this.#signals.health(address, nowMs);
        return health.state === 'unknown' || isSuspect(health) || !this.#probed.has(address);
      }),
    );
  }

  #waitsForProbes(nowMs: number): boolean {
    return nowMs - this.#startedAtMs < PROBES_WAIT_MS;
  }
}
