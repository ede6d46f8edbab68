import { sum } from '../../collections.js';
import type { Address, Engine, Pool } from '../../fleet/fleet.js';
import { refill } from '../saved.js';

/** Capacity grows in steps, each worth a new plan. */
const STEPS = 4;
/** A replica that was away for less is as warm as before. */
const LEAST_AWAY_MS = 5_000;
/** When more than this share of a pool would be missing, nobody starts slowly: there is nobody to wait for. */
const MOST_MISSING = 0.5;

interface Presence {
  isReady: boolean;
  changedMs: number;
  warmSinceMs: number;
}

/**
 * A replica that is new or comes back takes up its work step by step, as caches fill and kernels compile. Replicas that
 * are there when the control server starts count as warm.
 */
export class SlowStart {
  readonly #presence = new Map<Address, Presence>();
  #hasBegun = false;

  /** 0..1 for each engine, in their order: the part of its ready replicas' capacity that is there already. */
  ramps(
    engines: readonly Engine[],
    pools: readonly Pool[],
    readiness: readonly (readonly boolean[])[],
    nowMs: number,
  ): readonly number[] {
    const known = new Set<Address>();
    const ramps = engines.map((engine, at) => {
      const ready = engine.endpoints.filter((address, replica) => {
        known.add(address);
        this.#see(address, readiness[at]![replica]!, nowMs);
        return readiness[at]![replica]!;
      });
      if (ready.length === 0) return 1;
      const parts = ready.map((address) => this.#part(address, engine.slowStartSeconds ?? 0, nowMs));
      return sum(parts) / ready.length;
    });
    this.#hasBegun = true;
    for (const address of this.#presence.keys()) if (!known.has(address)) this.#presence.delete(address);
    return withoutShortage(engines, pools, readiness, ramps);
  }

  #see(address: Address, isReady: boolean, nowMs: number): void {
    const before = this.#presence.get(address);
    if (before === undefined) {
      const warmSinceMs = this.#hasBegun ? nowMs : Number.NEGATIVE_INFINITY;
      this.#presence.set(address, { isReady, changedMs: nowMs, warmSinceMs });
    } else if (before.isReady !== isReady) {
      const isCold = isReady && nowMs - before.changedMs >= LEAST_AWAY_MS;
      if (isCold) before.warmSinceMs = nowMs;
      before.isReady = isReady;
      before.changedMs = nowMs;
    }
  }

  #part(address: Address, slowStartSeconds: number, nowMs: number): number {
    const seconds = (nowMs - this.#presence.get(address)!.warmSinceMs) / 1_000;
    if (seconds >= slowStartSeconds) return 1;
    return Math.min(1, (Math.floor((seconds / slowStartSeconds) * STEPS) + 1) / STEPS);
  }

  save() {
    const presence = [...this.#presence].map(([address, known]) => [address, { ...known }] as const);
    return { presence, hasBegun: this.#hasBegun };
  }

  restore({ presence, hasBegun }: SavedSlowStart): void {
    refill(this.#presence, presence);
    this.#hasBegun = hasBegun;
  }
}

type SavedSlowStart = ReturnType<SlowStart['save']>;

/** Takes the ramps of engines back whose pool would lack too much by them. */
function withoutShortage(
  engines: readonly Engine[],
  pools: readonly Pool[],
  readiness: readonly (readonly boolean[])[],
  ramps: readonly number[],
): readonly number[] {
  const index = new Map(engines.map(({ id }, at) => [id, at]));
  const counts = readiness.map((replicas) => replicas.filter(Boolean).length);
  const exempt = new Set<number>();
  for (const { engineIds } of pools) {
    const members = engineIds.map((id) => index.get(id)!);
    const ready = members.reduce((sum, at) => sum + counts[at]!, 0);
    const warm = members.reduce((sum, at) => sum + counts[at]! * ramps[at]!, 0);
    if (ready - warm > MOST_MISSING * ready) for (const at of members) exempt.add(at);
  }
  return ramps.map((ramp, at) => (exempt.has(at) ? 1 : ramp));
}
