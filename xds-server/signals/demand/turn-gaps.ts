import { TURN_SECONDS } from '../../../wire/layout.js';
import type { TurnUsage } from '../../../wire/usage-report.js';
import { pack, packHashes, refill, restoreEntries, unpack, unpackHashes } from '../saved.js';

/** Turns are counted with an exponential memory. */
const MEMORY_MS = 1_800_000;
/** Fewer gaps say nothing, nor do those of a shorter time, in which no long one can end. */
const LEAST_GAPS = 50;
const LEAST_MS = TURN_SECONDS * 1_000;
/** What is in force moves only by more than this share of it, so that the price of moves stays still. */
const LEAST_CHANGE = 0.25;
/** More conversations are not followed at a time. */
const MOST_CONVERSATIONS = 4_096;
/** A node that was silent for this long has no say in which ones are. */
const SILENT_MS = 60_000;

/** How the turns of conversations follow each other in one (frontend, pool). */
export interface TurnGapView {
  /** Mean of the gaps between turns, of conversations that are watched. */
  readonly gapSeconds: number;
  /** 0..1 share of turns that follow another one. */
  readonly followUpShare: number;
  /** Gaps that these are from, old ones fading, and when a turn was last seen. */
  readonly gaps: number;
  readonly atMs: number;
}

/**
 * The gaps between turns that one frontend's filters report. Each counts the turns of conversations whose keys end in a
 * number of zero bits, as many as it has room for. So of those that satisfy the strictest one every turn is known, whichever
 * VM and Envoy it came through; the others are left out.
 */
export class TurnGaps {
  /** When each conversation had its last turn, by its key; the longest silent first. */
  readonly #lastMs = new Map<bigint, number>();
  /** The last report of each node; the longest silent first. */
  readonly #levels = new Map<string, { readonly level: number; readonly atMs: number }>();
  /** How many nodes are at a level. */
  readonly #nodesAt = new Map<number, number>();
  #ownLevel = 0;
  /** The level that gaps are counted at, and since when. */
  #level = 0;
  #sinceMs: number | undefined;
  #nowMs = 0;
  readonly #sums = new Map<bigint, Sums>();
  readonly #inForce = new Map<bigint, number>();

  /** Takes the turns since the last report of a node, and the level that it has counted all of. */
  add(nodeId: string, turns: readonly TurnUsage[], level: number, nowMs: number): void {
    this.#forgetNode(nodeId);
    this.#levels.set(nodeId, { level, atMs: nowMs });
    this.#nodesAt.set(level, (this.#nodesAt.get(level) ?? 0) + 1);
    this.#nowMs = nowMs;
    this.#takeLevel(nowMs);
    for (const usage of turns) {
      if (usage.turns > 0 && endsInZeros(usage.key, this.#level)) this.#note(usage, nowMs);
    }
    this.#forget(nowMs);
  }

  /** Forgets what it knows of other pools. */
  keep(pools: Pick<ReadonlyMap<bigint, unknown>, 'has'>): void {
    for (const known of [this.#sums, this.#inForce]) {
      for (const pool of known.keys()) if (!pools.has(pool)) known.delete(pool);
    }
  }

  /** Undefined before enough was counted. */
  view(pool: bigint): TurnGapView | undefined {
    if (this.#sinceMs === undefined || this.#nowMs - this.#sinceMs < LEAST_MS) return undefined;
    return this.#sums.get(pool)?.view;
  }

  /** What holds for move costs; `configuredSeconds` until enough was measured. */
  inForce(pool: bigint, configuredSeconds: number): number {
    const before = this.#inForce.get(pool) ?? configuredSeconds;
    const measured = this.view(pool)?.gapSeconds;
    if (measured === undefined || Math.abs(measured - before) <= LEAST_CHANGE * before) return before;
    this.#inForce.set(pool, measured);
    return measured;
  }

  #note({ pool, key, turns }: TurnUsage, nowMs: number): void {
    const sums = this.#sums.get(pool) ?? new Sums();
    this.#sums.set(pool, sums);
    const lastMs = this.#lastMs.get(key);
    const isNext = lastMs !== undefined && nowMs - lastMs < TURN_SECONDS * 1_000;
    sums.add(turns, isNext ? Math.max(0, nowMs - lastMs) / 1_000 : undefined, nowMs);
    this.#lastMs.delete(key);
    this.#lastMs.set(key, nowMs);
  }

  #takeLevel(nowMs: number): void {
    for (const [nodeId, { atMs }] of this.#levels) {
      if (nowMs - atMs <= SILENT_MS) break;
      this.#forgetNode(nodeId);
    }
    const most = Math.max(this.#ownLevel, ...this.#nodesAt.keys());
    if (most > this.#level || this.#sinceMs === undefined) {
      // Of conversations that are let go of, only the short gaps have been seen.
      this.#sums.clear();
      this.#sinceMs = nowMs;
    }
    this.#level = most;
  }

  #forgetNode(nodeId: string): void {
    const before = this.#levels.get(nodeId);
    if (before === undefined) return;
    this.#levels.delete(nodeId);
    const others = this.#nodesAt.get(before.level)! - 1;
    if (others > 0) this.#nodesAt.set(before.level, others);
    else this.#nodesAt.delete(before.level);
  }

  #forget(nowMs: number): void {
    for (const [key, atMs] of this.#lastMs) {
      if (nowMs - atMs < TURN_SECONDS * 1_000) break;
      this.#lastMs.delete(key);
    }
    while (this.#lastMs.size > MOST_CONVERSATIONS) {
      this.#ownLevel++;
      for (const key of this.#lastMs.keys()) if (!endsInZeros(key, this.#ownLevel)) this.#lastMs.delete(key);
    }
    if (this.#lastMs.size === 0) this.#ownLevel = 0;
  }

  save() {
    return {
      conversations: packHashes([...this.#lastMs.keys()]),
      lastMs: pack([...this.#lastMs.values()]),
      levels: [...this.#levels],
      nodesAt: [...this.#nodesAt],
      ownLevel: this.#ownLevel,
      level: this.#level,
      sinceMs: this.#sinceMs,
      nowMs: this.#nowMs,
      pools: packHashes([...this.#sums.keys()]),
      sums: [...this.#sums.values()].map((sums) => sums.save()),
      inForcePools: packHashes([...this.#inForce.keys()]),
      inForce: [...this.#inForce.values()],
    };
  }

  restore(saved: SavedTurnGaps): void {
    const lastMs = unpack(saved.lastMs);
    refill(
      this.#lastMs,
      unpackHashes(saved.conversations).map((key, at) => [key, lastMs[at]!]),
    );
    refill(this.#levels, saved.levels);
    refill(this.#nodesAt, saved.nodesAt);
    this.#ownLevel = saved.ownLevel;
    this.#level = saved.level;
    this.#sinceMs = saved.sinceMs;
    this.#nowMs = saved.nowMs;
    const sums = unpackHashes(saved.pools).map((pool, at) => [pool, saved.sums[at]!] as const);
    restoreEntries(this.#sums, sums, () => new Sums());
    refill(
      this.#inForce,
      unpackHashes(saved.inForcePools).map((pool, at) => [pool, saved.inForce[at]!]),
    );
  }
}

type SavedTurnGaps = ReturnType<TurnGaps['save']>;

function endsInZeros(key: bigint, bits: number): boolean {
  return BigInt.asUintN(bits, key) === 0n;
}

class Sums {
  #atMs = 0;
  #turns = 0;
  #gaps = 0;
  #gapSeconds = 0;

  /** `turns` in a row, the first of them after the gap, or of a conversation that begins. */
  add(turns: number, gapSeconds: number | undefined, nowMs: number): void {
    const keep = Math.exp(-Math.max(0, nowMs - this.#atMs) / MEMORY_MS);
    this.#atMs = nowMs;
    this.#turns = keep * this.#turns + turns;
    this.#gaps = keep * this.#gaps + turns - (gapSeconds === undefined ? 1 : 0);
    this.#gapSeconds = keep * this.#gapSeconds + (gapSeconds ?? 0);
  }

  get view(): TurnGapView | undefined {
    if (this.#gaps < LEAST_GAPS) return undefined;
    return {
      gapSeconds: this.#gapSeconds / this.#gaps,
      followUpShare: this.#gaps / this.#turns,
      gaps: this.#gaps,
      atMs: this.#atMs,
    };
  }

  save() {
    return { atMs: this.#atMs, turns: this.#turns, gaps: this.#gaps, gapSeconds: this.#gapSeconds };
  }

  restore(saved: ReturnType<Sums['save']>): void {
    this.#atMs = saved.atMs;
    this.#turns = saved.turns;
    this.#gaps = saved.gaps;
    this.#gapSeconds = saved.gapSeconds;
  }
}
