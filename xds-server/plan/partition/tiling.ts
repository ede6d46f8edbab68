/** Owner of points that have none yet. */
export const NOBODY = -1;

/** Where runs of equal owner begin. Owners are small integers that the caller gives a meaning. */
export interface Run {
  readonly start: number;
  readonly owner: number;
}

/** The line [0, length) cut into runs of equal owner; neighbouring runs always differ in owner. */
export class Tiling {
  readonly length: number;
  readonly #starts: number[] = [];
  readonly #owners: number[] = [];

  /** `runs` ascend and begin at 0; equal neighbours are merged. Without runs the whole line is nobody's. */
  constructor(length: number, runs: readonly Run[] = []) {
    this.length = length;
    if (length === 0) return;
    for (const { start, owner } of runs.length > 0 ? runs : [{ start: 0, owner: NOBODY }]) {
      if (this.#owners.at(-1) === owner) continue;
      this.#starts.push(start);
      this.#owners.push(owner);
    }
  }

  get runCount(): number {
    return this.#starts.length;
  }

  startOf(run: number): number {
    return this.#starts[run]!;
  }

  endOf(run: number): number {
    return this.#starts[run + 1] ?? this.length;
  }

  sizeOf(run: number): number {
    return this.endOf(run) - this.startOf(run);
  }

  /** Owner of a run; undefined beyond the first and the last, so that neighbours can be asked for freely. */
  ownerOf(run: number): number | undefined {
    return this.#owners[run];
  }

  runs(): Run[] {
    return this.#starts.map((start, run) => ({ start, owner: this.#owners[run]! }));
  }

  /** Index of the run that holds a point. */
  runAt(point: number): number {
    let low = 0;
    let high = this.#starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#starts[middle]! <= point) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Points owned by each owner below `owners`. */
  lengths(owners: number): number[] {
    const lengths = new Array<number>(owners).fill(0);
    for (let run = 0; run < this.runCount; run++) {
      const owner = this.#owners[run]!;
      if (owner !== NOBODY) lengths[owner]! += this.sizeOf(run);
    }
    return lengths;
  }

  /** Gives [start, end) to an owner. */
  paint(start: number, end: number, owner: number): void {
    if (start >= end) return;
    const first = this.runAt(start);
    const last = this.runAt(end - 1);
    const starts: number[] = [];
    const owners: number[] = [];
    if (this.#starts[first]! < start) {
      starts.push(this.#starts[first]!);
      owners.push(this.#owners[first]!);
    }
    starts.push(start);
    owners.push(owner);
    if (end < this.endOf(last)) {
      starts.push(end);
      owners.push(this.#owners[last]!);
    }
    this.#starts.splice(first, last - first + 1, ...starts);
    this.#owners.splice(first, last - first + 1, ...owners);
    this.#merge(first + starts.length);
    this.#merge(first + starts.length - 1);
    this.#merge(first + starts.length - 2);
    this.#merge(first);
  }

  /** Joins a run with the one before it when both have the same owner. */
  #merge(run: number): void {
    if (run <= 0 || run >= this.#starts.length || this.#owners[run] !== this.#owners[run - 1]) return;
    this.#starts.splice(run, 1);
    this.#owners.splice(run, 1);
  }
}
