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
      this.#addTo(last, traffic, 1);
      return;
    }
    for (let bin = Math.max(first, last - BINS); bin <= last; bin++) {
      const partMs = Math.min(nowMs, (bin + 1) * BIN_MS) - Math.max(fromMs, bin * BIN_MS);
      this.#addTo(bin, traffic, Math.max(0, partMs) / (nowMs - fromMs));
    }
  }

  #addTo(bin: number, traffic: Traffic, share: number): void {
    const sums = this.#bins[bin % (BINS + 1)]!;
    for (const name of NAMES) sums[name] += share * traffic[name];
  }

  /**
   * Mean of a second, over the last ones or since the first report if that is later; the present one is left out unless
   * it is the first.
   */
  rates(nowMs: number, seconds = USUAL_SECONDS): Traffic {
    const { length, end } = this.#span(nowMs, seconds);
    const rates = empty();
    for (let at = end - length; at < end; at++) {
      const sums = this.#bins[at % (BINS + 1)]!;
      for (const name of NAMES) rates[name] += sums[name] / length;
    }
    return rates;
  }

  /** Whether it gets so much more than it did that the prompts of most may be in no cache yet. */
  hasGrown(nowMs: number): boolean {
    return this.#requests(nowMs, USUAL_SECONDS) > GROWTH * this.#requests(nowMs, BINS);
  }

  /** Mean of a second, over times as in `rates`. */
  #requests(nowMs: number, seconds: number): number {
    const { length, end } = this.#span(nowMs, seconds);
    let sum = 0;
    for (let at = end - length; at < end; at++) sum += this.#bins[at % (BINS + 1)]!.requests;
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

function empty(): { -readonly [Name in keyof Traffic]: number } {
  return Object.fromEntries(NAMES.map((name) => [name, 0])) as ReturnType<typeof empty>;
}
