import { TURN_SECONDS, WATCHED_CONVERSATIONS } from '../../wire/layout.js';
import type { TurnUsage } from '../../wire/usage-report.js';

/** Turns are counted with an exponential memory. */
const MEMORY_MS = 1_800_000;
/** Fewer gaps say nothing. */
const LEAST_GAPS = 50;
/** What is in force moves only by more than this share of it, so that the price of moves stays still. */
const LEAST_CHANGE = 0.25;

/** How the turns of conversations follow each other in one (frontend, pool). */
export interface TurnGapView {
  /** Mean of the gaps between turns, of conversations that are watched. */
  readonly gapSeconds: number;
  /** 0..1 share of turns that follow another one. */
  readonly followUpShare: number;
  /** Gaps that these are from, old ones fading. */
  readonly gaps: number;
}

interface Conversation {
  readonly pool: bigint;
  readonly key: bigint;
  atMs: number;
}

/**
 * The gaps between turns that one frontend's filters report. All of them count the turns of the same conversations, so
 * those of one add up over VMs and Envoys, whichever of them its requests came through.
 */
export class TurnGaps {
  readonly #places: (Conversation | undefined)[] = [];
  readonly #sums = new Map<bigint, Sums>();
  readonly #inForce = new Map<bigint, number>();

  add({ pool, key, turns }: TurnUsage, nowMs: number): void {
    if (turns === 0) return;
    const place = Number(key & BigInt(WATCHED_CONVERSATIONS - 1));
    const held = this.#places[place];
    const isRunning = held !== undefined && nowMs - held.atMs < TURN_SECONDS * 1_000;
    // Filters that have not met the one with the least key yet watch another.
    if (isRunning && held.key < key) return;
    const sums = this.#sums.get(pool) ?? new Sums();
    this.#sums.set(pool, sums);
    const gapSeconds = isRunning && held.key === key ? Math.max(0, nowMs - held.atMs) / 1_000 : undefined;
    sums.add(turns, gapSeconds, nowMs);
    this.#places[place] = { pool, key, atMs: nowMs };
  }

  /** Undefined before enough was counted. */
  view(pool: bigint): TurnGapView | undefined {
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
    };
  }
}
