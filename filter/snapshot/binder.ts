import { Region } from '../abi/memory';
import { Row, Table } from '../state/table';

/**
 * Finds the rows of a table for the names of a new snapshot. Mostly a snapshot names the same things in the same
 * order as the one before, so the row in the same place is tried first, and an index is built only after a miss.
 */
export class Binder {
  private readonly table: Table;
  private before: usize = 0;
  private beforeCount: usize = 0;
  /** An open-addressed table of pointers to rows. Each binder has its own: installs use several in turns. */
  private readonly index: Region = new Region();
  private indexMask: usize = 0;
  private indexed: bool = false;
  private install: u32 = 0;

  constructor(table: Table) {
    this.table = table;
  }

  /** Begins an install; `before` are the pointers that the last one bound. */
  begin(before: usize, beforeCount: usize, install: u32): void {
    this.before = before;
    this.beforeCount = beforeCount;
    this.indexed = false;
    this.install = install;
  }

  /** The row with this key, new if there is none; `place` is where the snapshot names it. */
  bind(place: usize, key: u64): usize {
    let at: usize = 0;
    if (place < this.beforeCount) {
      at = <usize>load<u32>(this.before + (place << 2));
      if (changetype<Row>(at).key != key) at = 0;
    }
    if (!at) {
      if (!this.indexed) this.buildIndex();
      at = this.lookUp(key);
      if (!at) at = this.table.add(key);
    }
    changetype<Row>(at).seen = this.install;
    return at;
  }

  private buildIndex(): void {
    this.indexed = true;
    let slots: usize = 64;
    while (slots < <usize>this.table.count * 2) slots <<= 1;
    const mask = slots - 1;
    const base = this.index.reserve(slots << 2);
    memory.fill(base, 0, slots << 2);
    this.indexMask = mask;
    for (let at = this.table.first; at; at = changetype<Row>(at).next) {
      let slot = <usize>changetype<Row>(at).key & mask;
      while (load<u32>(base + (slot << 2))) slot = (slot + 1) & mask;
      store<u32>(base + (slot << 2), <u32>at);
    }
  }

  private lookUp(key: u64): usize {
    let slot = <usize>key & this.indexMask;
    while (true) {
      const at = <usize>load<u32>(this.index.base + (slot << 2));
      if (!at || changetype<Row>(at).key == key) return at;
      slot = (slot + 1) & this.indexMask;
    }
  }
}
