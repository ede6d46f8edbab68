import type { DisplacedKeys } from '../../wire/displaced-writer.js';
import { MAX_DISPLACED_ROWS } from '../../wire/layout.js';

/** So many of a frontend are kept for Envoys that have not heard of them yet, as long as conversations rest at most. */
const MOST_ROWS = 8_192;
const LONGEST_MS = 900_000;

interface Row {
  readonly hash: bigint;
  readonly nodeId: string;
  readonly number: number;
  /** Of the time that has passed so far. */
  readonly atMs: number;
}

/**
 * What the Envoys of each frontend have displaced of late, so that each can hear it of the others. Rows are numbered from the
 * clock, so that numbers of a server that was here before are all older. Where its clock was ahead of ours they are greater
 * than any of ours, and an Envoy that knows such a number is told everything.
 */
export class DisplacedBoard {
  readonly #now: () => number;
  readonly #rows = new Map<string, Row[]>();
  #last = 0;
  #clockMs = 0;
  #passedMs = 0;

  /** `now` in milliseconds since the epoch. */
  constructor(now: () => number) {
    this.#now = now;
  }

  add(frontendId: string, nodeId: string, hashes: readonly bigint[]): void {
    if (hashes.length === 0) return;
    const atMs = this.#passed();
    const rows = this.#rows.get(frontendId) ?? this.#newRows(frontendId, atMs);
    this.#last = Math.max(this.#last, Math.floor(this.#now()) * 1_000);
    for (const hash of hashes) rows.push({ hash, nodeId, number: ++this.#last, atMs });
    rows.splice(0, rows.length - MOST_ROWS);
  }

  /** What other nodes have displaced after a number, the oldest first; undefined when there is nothing. */
  after(frontendId: string, nodeId: string, cursor: number): DisplacedKeys | undefined {
    const rows = this.#rows.get(frontendId) ?? [];
    const atMs = this.#passed();
    const young = rows.findIndex((row) => atMs - row.atMs < LONGEST_MS);
    rows.splice(0, young < 0 ? rows.length : young);
    const hashes: bigint[] = [];
    for (let at = firstAfter(rows, cursor > this.#last ? 0 : cursor); at < rows.length; at++) {
      const row = rows[at]!;
      if (row.nodeId !== nodeId) hashes.push(row.hash);
      if (hashes.length === MAX_DISPLACED_ROWS) return { hashes, cursor: row.number };
    }
    return hashes.length === 0 ? undefined : { hashes, cursor: rows.at(-1)!.number };
  }

  /** Frontends of which nothing young is left may be gone. */
  #newRows(frontendId: string, atMs: number): Row[] {
    for (const [id, rows] of this.#rows) {
      if (rows.length === 0 || atMs - rows.at(-1)!.atMs >= LONGEST_MS) this.#rows.delete(id);
    }
    const rows: Row[] = [];
    this.#rows.set(frontendId, rows);
    return rows;
  }

  /** Milliseconds that have passed so far; a clock that is set back stands still for a moment. */
  #passed(): number {
    const now = this.#now();
    this.#passedMs += Math.max(0, now - this.#clockMs);
    this.#clockMs = now;
    return this.#passedMs;
  }
}

function firstAfter(rows: readonly Row[], cursor: number): number {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.number <= cursor) low = middle + 1;
    else high = middle;
  }
  return low;
}
