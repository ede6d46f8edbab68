import { packRows, unpackRows } from '../saved.js';

const BIN_MS = 1_000;
/** Longest time that rates are told over. */
const BINS = 60;
const USUAL_SECONDS = 10;
/** Of an engine with so many times the requests of the last minute, many may be of conversations that were elsewhere before. */
const GROWTH = 1.5;

/** Requests at one engine in some time. */
export interface Traffic {
  /** First attempts sent. */
  readonly requests: number;
  /** Replica-seconds that they cost. */
  readonly workSeconds: number;
  /** Seconds that they spend on the network, there and back. */
  readonly networkSeconds: number;
  /** Requests that ended, and the replica-seconds that they cost. */
  readonly ended: number;
  readonly endedWorkSeconds: number;
  /** Requests that were answered, at least in part, and the replica-seconds that such requests usually cost. */
  readonly answered: number;
  readonly answeredWorkSeconds: number;
  /** The same, and what prompts that were in no cache cost beyond the usual. */
  readonly coldWorkSeconds: number;
  /** Those of them that came from engines that tell how much of their prompts was in a cache. */
  readonly toldAnswers: number;
  /** Answers whose times are told, and how long they took, the network left out. */
  readonly timedAnswers: number;
  readonly staySeconds: number;
}

const NAMES = [
  'requests',
  'workSeconds',
  'networkSeconds',
  'ended',
  'endedWorkSeconds',
  'answered',
  'answeredWorkSeconds',
  'timedAnswers',
  'staySeconds',
  'coldWorkSeconds',
  'toldAnswers',
] as const;

/** What all frontends together send to one engine and get back, as they report it. */
export class EngineTraffic {
  #bins = Array.from({ length: BINS + 1 }, empty);
  #newest = 0;
  #first: number | undefined;

  /** Adds what happened since a time, evenly. */
  add(traffic: Traffic, nowMs: number, fromMs = nowMs): void {
    const last = this.#advance(nowMs);
    const first = Math.min(last, Math.floor(fromMs / BIN_MS));
    this.#first ??= first;
    if (first === last) {
      addTo(this.#sums(last), traffic, 1);
      return;
    }
    for (let bin = Math.max(first, last - BINS); bin <= last; bin++) {
      const partMs = Math.min(nowMs, (bin + 1) * BIN_MS) - Math.max(fromMs, bin * BIN_MS);
      addTo(this.#sums(bin), traffic, Math.max(0, partMs) / (nowMs - fromMs));
    }
  }

  #sums(bin: number): Sums {
    return this.#bins[bin % (BINS + 1)]!;
  }

  /**
   * Mean of a second, over the last ones or since the first report if that is later; the present one is left out unless
   * it is the first.
   */
  rates(nowMs: number, seconds = USUAL_SECONDS): Traffic {
    const { length, end } = this.#span(nowMs, seconds);
    const sums = empty();
    for (let at = end - length; at < end; at++) addTo(sums, this.#sums(at), 1);
    return meanOf(sums, length);
  }

  /** Whether it gets so much more than it did that the prompts of most may be in no cache yet. */
  hasGrown(nowMs: number): boolean {
    return this.#requests(nowMs, USUAL_SECONDS) > GROWTH * this.#requests(nowMs, BINS);
  }

  /** Mean of a second, over times as in `rates`. */
  #requests(nowMs: number, seconds: number): number {
    const { length, end } = this.#span(nowMs, seconds);
    let sum = 0;
    for (let at = end - length; at < end; at++) sum += this.#sums(at).requests;
    return sum / length;
  }

  #span(nowMs: number, seconds: number): { readonly length: number; readonly end: number } {
    const bin = this.#advance(nowMs);
    const length = Math.min(seconds, BINS, Math.max(1, bin - (this.#first ?? bin)));
    return { length, end: bin === this.#first ? bin + 1 : bin };
  }

  /** Number of the present bin; older ones than the ring holds are gone. */
  #advance(nowMs: number): number {
    const bin = Math.max(this.#newest, Math.floor(nowMs / BIN_MS));
    const steps = Math.min(bin - this.#newest, BINS + 1);
    for (let step = 0; step < steps; step++) this.#bins[(bin - step) % (BINS + 1)] = empty();
    this.#newest = bin;
    return bin;
  }

  save() {
    return { bins: packRows(this.#bins, NAMES), newest: this.#newest, first: this.#first };
  }

  restore(saved: SavedEngineTraffic): void {
    this.#bins = unpackRows(saved.bins, NAMES);
    this.#newest = saved.newest;
    this.#first = saved.first;
  }
}

type SavedEngineTraffic = ReturnType<EngineTraffic['save']>;

type Sums = { -readonly [Name in keyof Traffic]: number };

// Field by field, as these run for every row of every report and for every engine at every look: by names that are only known
// when they run, they take ten times as long.

function empty(): Sums {
  return {
    requests: 0,
    workSeconds: 0,
    networkSeconds: 0,
    ended: 0,
    endedWorkSeconds: 0,
    answered: 0,
    answeredWorkSeconds: 0,
    timedAnswers: 0,
    staySeconds: 0,
    coldWorkSeconds: 0,
    toldAnswers: 0,
  };
}

function addTo(sums: Sums, traffic: Traffic, share: number): void {
  sums.requests += share * traffic.requests;
  sums.workSeconds += share * traffic.workSeconds;
  sums.networkSeconds += share * traffic.networkSeconds;
  sums.ended += share * traffic.ended;
  sums.endedWorkSeconds += share * traffic.endedWorkSeconds;
  sums.answered += share * traffic.answered;
  sums.answeredWorkSeconds += share * traffic.answeredWorkSeconds;
  sums.timedAnswers += share * traffic.timedAnswers;
  sums.staySeconds += share * traffic.staySeconds;
  sums.coldWorkSeconds += share * traffic.coldWorkSeconds;
  sums.toldAnswers += share * traffic.toldAnswers;
}

function meanOf(sums: Sums, count: number): Traffic {
  return {
    requests: sums.requests / count,
    workSeconds: sums.workSeconds / count,
    networkSeconds: sums.networkSeconds / count,
    ended: sums.ended / count,
    endedWorkSeconds: sums.endedWorkSeconds / count,
    answered: sums.answered / count,
    answeredWorkSeconds: sums.answeredWorkSeconds / count,
    timedAnswers: sums.timedAnswers / count,
    staySeconds: sums.staySeconds / count,
    coldWorkSeconds: sums.coldWorkSeconds / count,
    toldAnswers: sums.toldAnswers / count,
  };
}
