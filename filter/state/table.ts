// Rows that outlive snapshots: what a VM has counted and seen of pools, engines and replicas, found again in the
// next snapshot by the hash of their names. A row never moves, so streams point at the rows they use.

import { allocate } from '../abi/blocks';

/** The head of every row. */
@unmanaged
export class Row {
  /** Hash that identifies the row in its table. */
  key: u64;
  /** When the row fell out of the snapshot; 0 while it is in. */
  goneMs: u64;
  next: usize;
  /** Number of the install that last named the row. */
  seen: u32;
  /** Streams and rows that point here; the row stays as long as there are any. */
  pins: u32;
}

/** Rows not in the snapshot stay this long, so that their last counts are reported. */
const KEEP_MS: u64 = 60_000;
const ROWS_PER_CHUNK: usize = 32;

export class Table {
  private readonly rowSize: usize;
  /** Chain of the rows in use, newest first. */
  first: usize = 0;
  private spare: usize = 0;
  count: u32 = 0;

  constructor(rowSize: usize) {
    this.rowSize = (rowSize + 7) & ~7;
  }

  /** A zeroed row with this key. */
  add(key: u64): usize {
    if (!this.spare) {
      const chunk = allocate(this.rowSize * ROWS_PER_CHUNK);
      for (let i: usize = 0; i < ROWS_PER_CHUNK; i++) {
        const row = changetype<Row>(chunk + i * this.rowSize);
        row.next = this.spare;
        this.spare = changetype<usize>(row);
      }
    }
    const at = this.spare;
    const row = changetype<Row>(at);
    this.spare = row.next;
    memory.fill(at, 0, this.rowSize);
    row.key = key;
    row.next = this.first;
    this.first = at;
    this.count++;
    return at;
  }

  /** Frees the rows that left the snapshot long ago and that nobody points at; `freed` is told of each. */
  sweep(install: u32, now: u64, freed: (row: usize) => void): void {
    let link: usize = 0;
    let at = this.first;
    while (at) {
      const row = changetype<Row>(at);
      const next = row.next;
      if (row.seen == install) row.goneMs = 0;
      else if (row.goneMs == 0) row.goneMs = now;
      if (row.seen != install && row.pins == 0 && now - row.goneMs >= KEEP_MS) {
        if (link) changetype<Row>(link).next = next;
        else this.first = next;
        row.next = this.spare;
        this.spare = at;
        this.count--;
        freed(at);
      } else {
        link = at;
      }
      at = next;
    }
  }
}
