/** Names the content of a full block and of everything before it; equal ids mean equal prefixes. */
export type BlockId = number;

/** The blocks that one sequence holds: first `shared` ones, known by id, then `own` ones that nobody else can use. */
export interface BlockTable {
  readonly ids: readonly BlockId[];
  shared: number;
  own: number;
}

/** A block with known content; in the ring of idle blocks while nobody holds it. */
interface Block {
  readonly id: BlockId;
  holders: number;
  older: Block;
  newer: Block;
}

/**
 * Key-value memory of one replica in blocks. Full blocks stay after their sequence has ended until the space is
 * needed, least recently used first, and serve later sequences that begin with the same content.
 */
export class BlockCache {
  readonly capacity: number;
  readonly #blocks = new Map<BlockId, Block>();
  /** The ring of idle blocks: its `newer` is the oldest, its `older` the newest. */
  readonly #ring = ringStart();
  #idle = 0;
  #own = 0;

  constructor(capacity: number) {
    this.capacity = capacity;
  }

  /** Blocks that sequences hold. */
  get used(): number {
    return this.#blocks.size - this.#idle + this.#own;
  }

  /** Blocks with reusable content that nobody holds. */
  get idle(): number {
    return this.#idle;
  }

  /** Leading blocks of `ids` that are present, at most `limit`. */
  hits(ids: readonly BlockId[], limit: number): number {
    const end = Math.min(limit, ids.length);
    let count = 0;
    while (count < end && this.#blocks.has(ids[count]!)) count++;
    return count;
  }

  /** Holds the first `shared` blocks of `ids`, all present, and `own` new ones; undefined when there is no room. */
  acquire(ids: readonly BlockId[], shared: number, own: number): BlockTable | undefined {
    let woken = 0;
    for (let i = 0; i < shared; i++) if (this.#blocks.get(ids[i]!)!.holders === 0) woken++;
    if (this.used + woken + own > this.capacity) return undefined;
    for (let i = 0; i < shared; i++) this.#hold(ids[i]!);
    this.#own += own;
    this.#makeRoom();
    return { ids, shared, own };
  }

  /** Adds `blocks` new ones; false when there is no room. */
  extend(table: BlockTable, blocks: number): boolean {
    if (this.used + blocks > this.capacity) return false;
    table.own += blocks;
    this.#own += blocks;
    this.#makeRoom();
    return true;
  }

  /**
   * Makes the first `full` blocks of the table, now computed to their end, available to others. A block that another
   * sequence has published meanwhile is shared and the copy given back.
   */
  publish(table: BlockTable, full: number): void {
    const end = Math.min(full, table.ids.length);
    while (table.shared < end) {
      this.#hold(table.ids[table.shared]!);
      table.shared++;
      table.own--;
      this.#own--;
    }
  }

  /** Gives all blocks back; the end of a prefix is forgotten before its beginning. */
  release(table: BlockTable): void {
    for (let i = table.shared - 1; i >= 0; i--) {
      const block = this.#blocks.get(table.ids[i]!)!;
      block.holders--;
      if (block.holders === 0) this.#append(block);
    }
    this.#own -= table.own;
    table.shared = 0;
    table.own = 0;
  }

  #hold(id: BlockId): void {
    const block = this.#blocks.get(id);
    if (!block) {
      this.#blocks.set(id, { ...ringStart(), id, holders: 1 });
      return;
    }
    if (block.holders === 0) this.#unlink(block);
    block.holders++;
  }

  #append(block: Block): void {
    block.older = this.#ring.older;
    block.newer = this.#ring;
    block.older.newer = block;
    this.#ring.older = block;
    this.#idle++;
  }

  #unlink(block: Block): void {
    block.older.newer = block.newer;
    block.newer.older = block.older;
    this.#idle--;
  }

  #makeRoom(): void {
    while (this.#blocks.size + this.#own > this.capacity) {
      const oldest = this.#ring.newer;
      this.#unlink(oldest);
      this.#blocks.delete(oldest.id);
    }
  }
}

function ringStart(): Block {
  const ring = { id: Number.NaN, holders: 0 } as Block;
  ring.older = ring;
  ring.newer = ring;
  return ring;
}
