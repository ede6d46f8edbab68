import type { Pool } from '../../fleet/fleet.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import { larger, type Move } from './demand-band.js';

/** A small change of demand leaves this share of the time that conditions have held. */
const LEFT_BY_SMALL_MOVE = 0.25;
/** For so long after conversations had to move, more of their prompts is in no cache than usually. */
export const COLD_MS = 60_000;
/** Where conversations have to move again and again, they do so for no longer, until there was as long a rest: faults could hide behind it for ever. */
const LONGEST_COLD_MS = 300_000;

/**
 * Since when conditions count as holding, in milliseconds, once demand has moved. A large change makes everything new.
 * A small one is waited for until it is sure to last, and says less: conditions that held for long are likely to go on,
 * and what is worth moving is moved at once. Where small changes come often, the time stays short.
 */
export function settledSince(beforeMs: number, move: Move, nowMs: number): number {
  return move === 'large' ? nowMs : nowMs - LEFT_BY_SMALL_MOVE * (nowMs - beforeMs);
}

/**
 * Since when conditions count as holding, by groups of pools that share engines, also by way of others: what happens to one
 * group changes nothing for another.
 */
export class SettledSince {
  /** By pool id; pools of a group have the same object. */
  readonly #groups = new Map<string, Group>();
  readonly #byEngine: ReadonlyMap<string, Group>;

  constructor(pools: readonly Pool[], nowMs: number) {
    const byEngine = new Map<string, Group>();
    for (const { id, engineIds } of pools) {
      const group: Group = {
        sinceMs: nowMs,
        unrestMs: Number.NEGATIVE_INFINITY,
        unrestSinceMs: Number.NEGATIVE_INFINITY,
        poolIds: [id],
        engineIds: [...engineIds],
      };
      for (const other of new Set(engineIds.flatMap((engineId) => byEngine.get(engineId) ?? []))) {
        group.poolIds.push(...other.poolIds);
        group.engineIds.push(...other.engineIds);
      }
      for (const engineId of group.engineIds) byEngine.set(engineId, group);
      for (const poolId of group.poolIds) this.#groups.set(poolId, group);
    }
    this.#byEngine = byEngine;
  }

  /** Notes how demand has moved at one time, by pool id. */
  demandMoved(moves: ReadonlyMap<string, Move>, nowMs: number): void {
    const largest = new Map<Group, Move>();
    for (const [poolId, move] of moves) {
      const group = this.#groups.get(poolId);
      if (group !== undefined) largest.set(group, larger(largest.get(group), move)!);
    }
    for (const [group, move] of largest) {
      group.sinceMs = settledSince(group.sinceMs, move, nowMs);
      if (move === 'large') noteUnrest(group, nowMs);
    }
  }

  /** Notes that replicas of these engines have come or gone. */
  enginesChanged(engineIds: ReadonlySet<string>, nowMs: number): void {
    for (const group of this.#groups.values()) {
      if (!group.engineIds.some((id) => engineIds.has(id))) continue;
      group.sinceMs = nowMs;
      noteUnrest(group, nowMs);
    }
  }

  /** Whether an engine may have conversations that others of its group had until they moved. */
  isCold(engineId: string, nowMs: number): boolean {
    const group = this.#byEngine.get(engineId);
    if (group === undefined) return false;
    return nowMs - group.unrestMs < COLD_MS && nowMs - group.unrestSinceMs < LONGEST_COLD_MS;
  }

  /** Seconds by pool id, and the least of all. */
  at(nowMs: number): Required<Pick<FleetState, 'settledSeconds' | 'settledSecondsByPool'>> {
    const byPool = [...this.#groups].map(
      ([id, { sinceMs }]) => [id, Math.max(0, (nowMs - sinceMs) / 1000)] as const,
    );
    return {
      settledSeconds: Math.min(...byPool.map(([, seconds]) => seconds)),
      settledSecondsByPool: Object.fromEntries(byPool),
    };
  }

  /** By pool id. */
  save() {
    return [...this.#groups].map(
      ([poolId, { sinceMs, unrestMs, unrestSinceMs }]) =>
        [poolId, { sinceMs, unrestMs, unrestSinceMs }] as const,
    );
  }

  restore(saved: SavedSettledSince): void {
    for (const [poolId, known] of saved) Object.assign(this.#groups.get(poolId)!, known);
  }
}

type SavedSettledSince = ReturnType<SettledSince['save']>;

interface Group {
  sinceMs: number;
  /** When many of its conversations last had to move, and since when they have had to without a longer rest. */
  unrestMs: number;
  unrestSinceMs: number;
  readonly poolIds: string[];
  readonly engineIds: string[];
}

function noteUnrest(group: Group, nowMs: number): void {
  if (nowMs - group.unrestMs >= LONGEST_COLD_MS) group.unrestSinceMs = nowMs;
  group.unrestMs = nowMs;
}
