import { sum } from '../../collections.js';
import { packRows, unpackRows } from '../saved.js';

/** Longest time that is looked back over. */
const LONGEST_MS = 60_000;
/** Looks that follow sooner on the last one are left out. */
const STEP_MS = 400;

/** How many requests an engine had under way, over the last minute. */
export class RequestsHeld {
  #counts: { readonly atMs: number; readonly requests: number }[] = [];

  add(requests: number, nowMs: number): void {
    if (nowMs - (this.#counts.at(-1)?.atMs ?? 0) < STEP_MS) return;
    this.#counts = this.#counts.filter(({ atMs }) => nowMs - atMs <= LONGEST_MS);
    this.#counts.push({ atMs: nowMs, requests });
  }

  forget(): void {
    this.#counts = [];
  }

  /** The most over the last seconds; 0 when nothing is known. */
  most(seconds: number, nowMs: number): number {
    return Math.max(0, ...this.#within(seconds, nowMs));
  }

  /** The fewest over the last seconds; undefined when it was not watched for so long. */
  least(seconds: number, nowMs: number): number | undefined {
    const oldest = this.#counts[0];
    if (oldest === undefined || nowMs - oldest.atMs < seconds * 1_000) return undefined;
    return Math.min(...this.#within(seconds, nowMs));
  }

  /** Mean over the last seconds; 0 when nothing is known. */
  mean(seconds: number, nowMs: number): number {
    const counts = this.#within(seconds, nowMs);
    return sum(counts) / Math.max(1, counts.length);
  }

  #within(seconds: number, nowMs: number): readonly number[] {
    return this.#counts.filter(({ atMs }) => nowMs - atMs <= seconds * 1_000).map(({ requests }) => requests);
  }

  save() {
    return { counts: packRows(this.#counts, ['atMs', 'requests']) };
  }

  restore({ counts }: SavedRequestsHeld): void {
    this.#counts = unpackRows(counts, ['atMs', 'requests']);
  }
}

type SavedRequestsHeld = ReturnType<RequestsHeld['save']>;
