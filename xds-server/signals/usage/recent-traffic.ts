import type { EngineUsage, PoolUsage } from '../../../wire/usage-report.js';

/** What became of requests in about the last minute, as filters counted it. */
interface Traffic {
  /** Mean time from the request to the first token of streamed answers; null while there are none. */
  readonly firstTokenSeconds: number | null;
  /** Mean time from the request to the end of other answers; null while there are none. */
  readonly wholeSeconds: number | null;
}

export interface FrontendTraffic extends Traffic {
  /** What clients offered, refused requests included. */
  readonly offeredPerSecond: number;
  /** Share of it that the filter refused, as too much or as nobody was usable; null while nothing is offered. */
  readonly refusedShare: number | null;
  /**
   * Share of the ended requests that clients saw fail: 5xx, no response (also where the client left before), silent or broken
   * off after headers; null while none ended.
   */
  readonly failedShare: number | null;
}

export interface EngineTraffic extends Traffic {
  /** Requests that were sent here first, whoever answered. */
  readonly endedPerSecond: number;
  /** Attempts that failed here, whether or not another engine answered in the end. */
  readonly failuresPerSecond: number;
  /** Answers with a status that it gave in that time, also to attempts that went elsewhere before. */
  readonly answers: number;
  /** Share of these with 4xx, its own 429 included; null while there are none. */
  readonly rejectedShare: number | null;
}

interface Counts {
  offered: number;
  refused: number;
  ended: number;
  failed: number;
  failures: number;
  answers: number;
  rejected: number;
  firstTokenSecondsSum: number;
  firstTokenCount: number;
  wholeSecondsSum: number;
  wholeCount: number;
}

/** What was reported in one slice of time. */
interface Slice {
  readonly number: number;
  /** Since when its reports count. */
  fromMs: number;
  readonly frontends: Map<string, Counts>;
  readonly engines: Map<string, Counts>;
}

const SLICE_MS = 5_000;
const SLICES = 12;

/** Traffic of about the last minute, to be looked at: a slice of time is forgotten as a whole. */
export class RecentTraffic {
  #slices: Slice[] = [];

  addPool(frontendId: string, usage: PoolUsage, fromMs: number, nowMs: number): void {
    const counts = countsOf(this.#slice(fromMs, nowMs).frontends, frontendId);
    counts.offered += usage.offered;
    counts.refused += usage.shed + usage.unavailable;
  }

  addEngine(frontendId: string, engineId: string, usage: EngineUsage, fromMs: number, nowMs: number): void {
    const { frontends, engines } = this.#slice(fromMs, nowMs);
    addEnds(countsOf(frontends, frontendId), usage);
    addEnds(countsOf(engines, engineId), usage);
  }

  frontend(frontendId: string, nowMs: number): FrontendTraffic {
    const slices = this.#recent(nowMs);
    const counts = sumOf(slices.map(({ frontends }) => frontends.get(frontendId)));
    return {
      offeredPerSecond: ratio(counts.offered, secondsOf(slices, nowMs)) ?? 0,
      refusedShare: ratio(counts.refused, counts.offered),
      failedShare: ratio(counts.failed, counts.ended),
      ...latenciesOf(counts),
    };
  }

  engine(engineId: string, nowMs: number): EngineTraffic {
    const slices = this.#recent(nowMs);
    const counts = sumOf(slices.map(({ engines }) => engines.get(engineId)));
    const seconds = secondsOf(slices, nowMs);
    return {
      endedPerSecond: ratio(counts.ended, seconds) ?? 0,
      failuresPerSecond: ratio(counts.failures, seconds) ?? 0,
      answers: counts.answers,
      rejectedShare: ratio(counts.rejected, counts.answers),
      ...latenciesOf(counts),
    };
  }

  #slice(fromMs: number, nowMs: number): Slice {
    const number = sliceNumber(nowMs);
    const last = this.#slices.at(-1);
    if (last?.number === number) {
      last.fromMs = Math.min(last.fromMs, fromMs);
      return last;
    }
    const slice: Slice = { number, fromMs, frontends: new Map(), engines: new Map() };
    this.#slices = [...this.#recent(nowMs), slice];
    return slice;
  }

  #recent(nowMs: number): Slice[] {
    return this.#slices.filter(({ number }) => number > sliceNumber(nowMs) - SLICES);
  }
}

/** How long the slices are together, those without a report in between included. */
function secondsOf(slices: readonly Slice[], nowMs: number): number {
  return slices.length === 0 ? 0 : (nowMs - slices[0]!.fromMs) / 1_000;
}

function sliceNumber(atMs: number): number {
  return Math.floor(atMs / SLICE_MS);
}

function noCounts(): Counts {
  return {
    ...{ offered: 0, refused: 0, ended: 0, failed: 0, failures: 0, answers: 0, rejected: 0 },
    ...{ firstTokenSecondsSum: 0, firstTokenCount: 0, wholeSecondsSum: 0, wholeCount: 0 },
  };
}

function countsOf(all: Map<string, Counts>, id: string): Counts {
  const known = all.get(id);
  if (known !== undefined) return known;
  const counts = noCounts();
  all.set(id, counts);
  return counts;
}

function addEnds(counts: Counts, usage: EngineUsage): void {
  counts.ended += usage.ended;
  counts.failed += usage.status5xx + usage.noResponse + usage.stalled + usage.broken;
  counts.failures += usage.failures;
  counts.answers += usage.status2xx + usage.status4xx + usage.status5xx;
  counts.rejected += usage.status4xx;
  counts.firstTokenSecondsSum += usage.firstTokenSecondsSum;
  counts.firstTokenCount += usage.firstTokenCount;
  counts.wholeSecondsSum += usage.wholeSecondsSum;
  counts.wholeCount += usage.wholeCount;
}

function sumOf(all: readonly (Counts | undefined)[]): Counts {
  const sum = noCounts();
  for (const counts of all) {
    if (counts !== undefined) addCounts(sum, counts);
  }
  return sum;
}

/** Field by field: it runs for every engine at every look, and by names it takes several times as long. */
function addCounts(sum: Counts, counts: Counts): void {
  sum.offered += counts.offered;
  sum.refused += counts.refused;
  sum.ended += counts.ended;
  sum.failed += counts.failed;
  sum.failures += counts.failures;
  sum.answers += counts.answers;
  sum.rejected += counts.rejected;
  sum.firstTokenSecondsSum += counts.firstTokenSecondsSum;
  sum.firstTokenCount += counts.firstTokenCount;
  sum.wholeSecondsSum += counts.wholeSecondsSum;
  sum.wholeCount += counts.wholeCount;
}

function latenciesOf(counts: Counts): Traffic {
  return {
    firstTokenSeconds: ratio(counts.firstTokenSecondsSum, counts.firstTokenCount),
    wholeSeconds: ratio(counts.wholeSecondsSum, counts.wholeCount),
  };
}

function ratio(part: number, whole: number): number | null {
  return whole > 0 ? part / whole : null;
}
