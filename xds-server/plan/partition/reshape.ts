import { NOBODY, type Tiling } from './tiling.js';

/** Hears of every transfer, before it happens. */
export type TransferListener = (start: number, end: number, from: number, to: number) => void;

/**
 * Brings a tiling to given lengths per owner. Each point changes its owner at most once and only from an owner that
 * is above its length to one that is below, so exactly half the sum of all |differences| moves, the least possible.
 * What can be chosen is *which* points move: boundaries shift where a giver and a taker are neighbours, whole small
 * runs are swallowed before large ones are cut, and a cut is made where it opens a boundary to another giver.
 */
export class Reshaping {
  readonly tiling: Tiling;
  /** Points owned beyond the length to reach; negative where points are missing. */
  readonly #excess: number[];
  readonly #listener: TransferListener | undefined;

  /** Throws RangeError unless `lengths[owner]` add up to the length of the tiling. */
  constructor(tiling: Tiling, lengths: readonly number[], listener?: TransferListener) {
    const sum = lengths.reduce((partial, length) => partial + length, 0);
    if (sum !== tiling.length) throw new RangeError(`lengths add up to ${sum}, not ${tiling.length}`);
    const owned = tiling.lengths(lengths.length);
    this.tiling = tiling;
    this.#excess = lengths.map((length, owner) => owned[owner]! - length);
    this.#listener = listener;
  }

  /** Points the owner must still give away. */
  surplusOf(owner: number | undefined): number {
    if (owner === undefined) return 0;
    return owner === NOBODY ? Number.POSITIVE_INFINITY : Math.max(0, this.#excess[owner]!);
  }

  /** Points the owner must still get. */
  needOf(owner: number | undefined): number {
    return owner === undefined || owner === NOBODY ? 0 : Math.max(0, -this.#excess[owner]!);
  }

  /**
   * Moves as much of [start, end), all of one owner, as that owner must give and `to` must get, at the end that
   * touches a run of `to`, else at an end of the giver's run.
   */
  #transfer(start: number, end: number, to: number): void {
    const run = this.tiling.runAt(start);
    const from = this.tiling.ownerOf(run)!;
    const amount = Math.min(end - start, this.surplusOf(from), this.needOf(to));
    if (amount === 0) return;
    const touchesLeft = start === this.tiling.startOf(run);
    const touchesRight = end === this.tiling.endOf(run);
    const leftIsTo = touchesLeft && this.tiling.ownerOf(run - 1) === to;
    const rightIsTo = touchesRight && this.tiling.ownerOf(run + 1) === to;
    const atRight = rightIsTo || (!leftIsTo && touchesRight && !touchesLeft);
    const first = atRight ? end - amount : start;
    this.#listener?.(first, first + amount, from, to);
    this.#give(first, first + amount, to);
  }

  /**
   * Transfers to `to` as much as may move of every part of [start, end), whoever owns it; without `mayCut` only
   * parts that leave no more runs than before.
   */
  transferParts(start: number, end: number, to: number, mayCut: boolean): void {
    for (let at = start; at < end && this.needOf(to) > 0; ) {
      const partEnd = Math.min(end, this.tiling.endOf(this.tiling.runAt(at)));
      if (mayCut || !this.#cuts(at, partEnd, to)) this.#transfer(at, partEnd, to);
      at = partEnd;
    }
  }

  /** Makes all remaining transfers. */
  finish(): void {
    while (this.#shiftBest() || this.#cutBest()) {
      // Each round uses up a run, a surplus or a need.
    }
  }

  /**
   * Removes small runs, once all transfers are made, until no owner has more than `maxRunsPerOwner` and there are at
   * most `maxRuns`. A run goes to a neighbour, which gives as much back at another border between the two: lengths
   * stay, twice the size of the run moves. Runs without such a neighbour stay.
   */
  trim(maxRunsPerOwner: number, maxRuns: number): void {
    for (;;) {
      const crumb = this.#smallestExchangeable(maxRunsPerOwner, maxRuns);
      if (crumb === undefined) return;
      this.#give(this.tiling.startOf(crumb.run), this.tiling.endOf(crumb.run), crumb.to);
      this.finish();
    }
  }

  /** The smallest run too many and the neighbour that it can go to. */
  #smallestExchangeable(maxRunsPerOwner: number, maxRuns: number): { run: number; to: number } | undefined {
    const { tiling } = this;
    const counts = new Array<number>(this.#excess.length).fill(0);
    for (const { owner } of tiling.runs()) counts[owner]!++;
    const isCrowded = (owner: number) => counts[owner]! > maxRunsPerOwner || tiling.runCount > maxRuns;
    if (!counts.some((_, owner) => isCrowded(owner))) return undefined;

    const borders = this.#borderCounts();
    let best: { run: number; to: number } | undefined;
    for (let run = 0; run < tiling.runCount; run++) {
      const owner = tiling.ownerOf(run)!;
      if (!isCrowded(owner) || (best !== undefined && tiling.sizeOf(best.run) <= tiling.sizeOf(run)))
        continue;
      const left = tiling.ownerOf(run - 1);
      const right = tiling.ownerOf(run + 1);
      const ownBorders = left === right ? 2 : 1;
      const to = [left, right].find((other) => (borders.get(this.#pair(owner, other)) ?? 0) > ownBorders);
      if (to !== undefined) best = { run, to };
    }
    return best;
  }

  /** How many borders each pair of owners has. */
  #borderCounts(): Map<number, number> {
    const counts = new Map<number, number>();
    for (let run = 1; run < this.tiling.runCount; run++) {
      const pair = this.#pair(this.tiling.ownerOf(run - 1)!, this.tiling.ownerOf(run));
      counts.set(pair, (counts.get(pair) ?? 0) + 1);
    }
    return counts;
  }

  #pair(a: number, b: number | undefined): number {
    return b === undefined ? -1 : Math.min(a, b) * this.#excess.length + Math.max(a, b);
  }

  /** Whether a transfer from this part of a run would add a run: it reaches no run of `to` and leaves a rest. */
  #cuts(start: number, end: number, to: number): boolean {
    const run = this.tiling.runAt(start);
    const atLeft = start === this.tiling.startOf(run);
    const atRight = end === this.tiling.endOf(run);
    if (atLeft && this.tiling.ownerOf(run - 1) === to) return false;
    if (atRight && this.tiling.ownerOf(run + 1) === to) return false;
    const whole = end - start <= Math.min(this.surplusOf(this.tiling.ownerOf(run)), this.needOf(to));
    return !(atLeft && atRight && whole);
  }

  /** Gives [start, end), all of one owner, to another. */
  #give(start: number, end: number, to: number): void {
    const from = this.tiling.ownerOf(this.tiling.runAt(start))!;
    this.tiling.paint(start, end, to);
    if (from !== NOBODY) this.#excess[from]! -= end - start;
    this.#excess[to]! += end - start;
  }

  /** The best transfer between neighbours; false when there is none. */
  #shiftBest(): boolean {
    let best: { run: number; to: number; rank: number; amount: number } | undefined;
    for (let run = 0; run < this.tiling.runCount; run++) {
      const surplus = this.surplusOf(this.tiling.ownerOf(run));
      if (surplus === 0) continue;
      const size = this.tiling.sizeOf(run);
      const left = this.tiling.ownerOf(run - 1);
      const right = this.tiling.ownerOf(run + 1);
      for (const to of [left, right]) {
        const amount = Math.min(size, surplus, this.needOf(to));
        if (amount === 0) continue;
        const rank = amount < size ? 0 : left === right ? 2 : 1;
        // Small ones first: more of them fit into the same surplus and need.
        if (best === undefined || rank > best.rank || (rank === best.rank && amount < best.amount)) {
          best = { run, to: to!, rank, amount };
        }
      }
    }
    if (best === undefined) return false;
    this.#transfer(this.tiling.startOf(best.run), this.tiling.endOf(best.run), best.to);
    return true;
  }

  /** A transfer between owners that are no neighbours; false when nothing is left to move. */
  #cutBest(): boolean {
    const to = this.#excess.indexOf(Math.min(...this.#excess));
    const need = this.needOf(to);
    if (need === 0) return false;
    let best: { run: number; rank: number; size: number; atRight: boolean } | undefined;
    for (let run = 0; run < this.tiling.runCount; run++) {
      const surplus = this.surplusOf(this.tiling.ownerOf(run));
      if (surplus === 0) continue;
      const size = this.tiling.sizeOf(run);
      const whole = size <= Math.min(surplus, need);
      const leftGives = this.surplusOf(this.tiling.ownerOf(run - 1)) > 0;
      const rightGives = this.surplusOf(this.tiling.ownerOf(run + 1)) > 0;
      const rank = (whole ? 2 : 0) + (leftGives || rightGives ? 1 : 0);
      if (best === undefined || rank > best.rank || (rank === best.rank && size > best.size)) {
        best = { run, rank, size, atRight: rightGives && !leftGives };
      }
    }
    const { run, atRight } = best!;
    const start = this.tiling.startOf(run);
    const end = this.tiling.endOf(run);
    const amount = Math.min(end - start, this.surplusOf(this.tiling.ownerOf(run)), need);
    if (atRight) this.#transfer(end - amount, end, to);
    else this.#transfer(start, start + amount, to);
    return true;
  }
}
