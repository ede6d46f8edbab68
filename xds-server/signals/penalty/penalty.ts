import type { SlownessLimit } from '../capacity/throughput.js';
import { packRows, unpackRows } from '../saved.js';

/** An engine is penalised when it is this many times slower than it should be, for this long, or longer by evidence that is less sure. */
const ENTRY_EXCESS = 2;
const ENTRY_MS = 2_000;
/** A penalty below this severity ends. */
const EXIT_SEVERITY = 1.3;
const MOST_SEVERITY = 10;
/** A severity is left alone while the excess differs less than by this factor. */
const DEAD_FACTOR = 1.25;
/** It may halve this often. */
const FALL_INTERVAL_MS = 5_000;
/** By how slow the engine was at most over this time: when it has little to do, its answers scatter. */
const SLOWNESS_MS = 15_000;
/** An engine that is slow again so soon after its penalty fell by more than this is watched for twice that time, up to so many times. */
const RELAPSE_MS = 120_000;
const RELAPSE_FACTOR = 2;
const MOST_PATIENCE = 4;
/** Without evidence it falls by this factor, this often, so that requests come back to give some. */
const EASE_INTERVAL_MS = 10_000;
const EASE_FACTOR = 0.7;

/**
 * One engine's penalty over time. Severity is about how many times slower than expected the engine answers: it rises at
 * once, falls by half every 5 s while the engine is faster than that, and more slowly while nothing is heard of it.
 */
export class Penalty {
  #severity = 1;
  #capacitySeverity = 1;
  #sinceMs: number | undefined;
  #slowSinceMs: number | undefined;
  #lastFallMs = 0;
  #lastHeardMs = 0;
  #roseMs = 0;
  /** What it last rose to, and when it has fallen from that by so much that the engine was believed to recover. */
  #peak = 1;
  #believedMs: number | undefined;
  #patience = 1;
  #looks: readonly { readonly atMs: number; readonly slowness: number; readonly mostSlowness: number }[] = [];

  /** 1..10; 1 is none. */
  get severity(): number {
    return this.#severity;
  }

  /** The same for its capacity: how many times less than by its profile it can do, which may be fewer than its answers are slower. */
  get capacitySeverity(): number {
    return this.#capacitySeverity;
  }

  /** When it began; undefined while there is none. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Goes on with a penalty from before. */
  resume(severity: number, sinceMs: number, nowMs: number): void {
    this.#severity = Math.min(MOST_SEVERITY, Math.max(1, severity));
    this.#sinceMs = this.#severity > 1 ? sinceMs : undefined;
    this.#capacitySeverity = this.#severity;
    this.#peak = this.#severity;
    this.#roseMs = nowMs;
    this.#lastFallMs = nowMs;
    this.#lastHeardMs = nowMs;
  }

  /** Forgets all that was known of the engine. */
  end(): void {
    this.#recover();
    this.#believedMs = undefined;
    this.#patience = 1;
  }

  #recover(): void {
    this.#severity = 1;
    this.#capacitySeverity = 1;
    this.#sinceMs = undefined;
    this.#slowSinceMs = undefined;
    this.#looks = [];
  }

  /**
   * `excess`: times slower than load explains at the most, compared with its like; undefined when there is too little
   * evidence. `slowness`: times slower that the engine must be for its answers at what it gets done now. The first is
   * sure enough to begin with; it is gone with the load, which a penalty takes away. The second stays, and does not fall
   * below it. `limit`: how slow it can be at most by what it has got done since the penalty last rose, whatever its
   * answers are like; that is remembered as long as `slowness`. `entryMs`: for how long `excess` must last for a beginning.
   */
  advance(
    excess: number | undefined,
    nowMs: number,
    slowness = 1,
    limit?: SlownessLimit,
    entryMs = ENTRY_MS,
  ): void {
    if (excess === undefined) this.#withoutEvidence(nowMs);
    else if (this.#sinceMs === undefined) this.#mayBegin(excess, entryMs, nowMs);
    else this.#follow(excess, slowness, limit, nowMs);
  }

  #mayBegin(excess: number, entryMs: number, nowMs: number): void {
    if (excess < ENTRY_EXCESS) {
      this.#slowSinceMs = undefined;
      return;
    }
    this.#slowSinceMs ??= nowMs;
    if (nowMs - this.#slowSinceMs < entryMs) return;
    this.resume(excess, nowMs, nowMs);
    this.#noteRise(nowMs);
  }

  /** An engine that turns slow again and again would be believed each time that it pauses. */
  #noteRise(nowMs: number): void {
    if (this.#believedMs !== undefined) {
      const isRelapse = nowMs - this.#believedMs <= RELAPSE_MS;
      this.#patience = isRelapse ? Math.min(MOST_PATIENCE, 2 * this.#patience) : 1;
    }
    this.#believedMs = undefined;
    this.#peak = this.#severity;
  }

  #follow(excess: number, slowness: number, limit: SlownessLimit | undefined, nowMs: number): void {
    this.#lastHeardMs = nowMs;
    const target = Math.min(MOST_SEVERITY, Math.max(1, excess));
    const sinceMs = nowMs - SLOWNESS_MS * this.#patience;
    const mostSlowness =
      limit !== undefined && limit.sinceMs >= this.#roseMs ? limit.slowness : Number.POSITIVE_INFINITY;
    this.#looks = [
      ...this.#looks.filter(({ atMs }) => atMs > sinceMs),
      { atMs: nowMs, slowness, mostSlowness },
    ];
    const remembered = Math.max(...this.#looks.map((look) => look.slowness));
    const most = Math.min(...this.#looks.map((look) => look.mostSlowness));
    const least = Math.max(target, Math.min(remembered, most));
    if (target > this.#severity * DEAD_FACTOR || target === MOST_SEVERITY) {
      this.#severity = target;
      this.#capacitySeverity = target;
      this.#lastFallMs = nowMs;
      // What it got done before says nothing any more.
      this.#roseMs = nowMs;
      this.#looks = this.#looks.map((look) => ({ ...look, mostSlowness: Number.POSITIVE_INFINITY }));
      this.#noteRise(nowMs);
      return;
    }
    // What it got done since then, it can do, however late its answers are: they may have waited in the queue that it works off.
    if (most < this.#capacitySeverity / DEAD_FACTOR) this.#capacitySeverity = Math.max(1, most);
    // One that is over by what is known ends, however little it differs.
    const isLess = least < Math.max(EXIT_SEVERITY, this.#severity / DEAD_FACTOR);
    if (isLess && nowMs - this.#lastFallMs >= FALL_INTERVAL_MS)
      this.#fallTo(Math.max(least, this.#severity / 2), nowMs);
  }

  #withoutEvidence(nowMs: number): void {
    this.#slowSinceMs = undefined;
    if (this.#sinceMs === undefined) return;
    if (nowMs - Math.max(this.#lastHeardMs, this.#lastFallMs) >= EASE_INTERVAL_MS) {
      this.#fallTo(this.#severity * EASE_FACTOR, nowMs);
    }
  }

  #fallTo(severity: number, nowMs: number): void {
    this.#lastFallMs = nowMs;
    this.#severity = severity;
    this.#capacitySeverity = Math.min(severity, this.#capacitySeverity);
    const isOver = severity < EXIT_SEVERITY;
    if (isOver || severity < this.#peak / RELAPSE_FACTOR) this.#believedMs = nowMs;
    if (isOver) this.#recover();
  }

  save() {
    return {
      severity: this.#severity,
      capacitySeverity: this.#capacitySeverity,
      sinceMs: this.#sinceMs,
      slowSinceMs: this.#slowSinceMs,
      lastFallMs: this.#lastFallMs,
      lastHeardMs: this.#lastHeardMs,
      roseMs: this.#roseMs,
      peak: this.#peak,
      believedMs: this.#believedMs,
      patience: this.#patience,
      looks: packRows(this.#looks, LOOK),
    };
  }

  restore(saved: SavedPenalty): void {
    this.#severity = saved.severity;
    this.#capacitySeverity = saved.capacitySeverity;
    this.#sinceMs = saved.sinceMs;
    this.#slowSinceMs = saved.slowSinceMs;
    this.#lastFallMs = saved.lastFallMs;
    this.#lastHeardMs = saved.lastHeardMs;
    this.#roseMs = saved.roseMs;
    this.#peak = saved.peak;
    this.#believedMs = saved.believedMs;
    this.#patience = saved.patience;
    this.#looks = unpackRows(saved.looks, LOOK);
  }
}

type SavedPenalty = ReturnType<Penalty['save']>;

const LOOK = ['atMs', 'slowness', 'mostSlowness'] as const;

/** 0..0.9: what a penalty takes off an engine's capacity. One that is s times slower gets through 1/s of the work. */
export function capacityPenalty(severity: number): number {
  return 1 - 1 / severity;
}
