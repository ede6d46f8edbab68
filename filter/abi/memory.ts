// Memory for what the host hands over, and for what outlives a callback. Results of one callback lie in a static arena that
// the next callback starts over, and a large one lies in the landing region.

import { allocate, release } from './blocks';

const ARENA_SIZE: usize = 32768;
const ARENA: usize = memory.data(32768, 16);
let used: usize = 0;

/** Where the host writes the address (+0) and the length (+4) of a result. */
export const RESULT: usize = memory.data(16, 8);

/** A block that grows, and keeps its contents only when asked to. */
export class Region {
  base: usize = 0;
  capacity: usize = 0;

  /** Makes room for `size` bytes; contents are lost when the block has to move. */
  reserve(size: usize): usize {
    if (size > this.capacity) {
      if (this.base) release(this.base, this.capacity);
      this.take(size);
    }
    return this.base;
  }

  /** Makes room for `size` bytes and keeps the first `kept`. */
  extend(size: usize, kept: usize): usize {
    if (!kept || size <= this.capacity) return this.reserve(size);
    const before = this.base;
    const capacity = this.capacity;
    this.take(size);
    memory.copy(this.base, before, kept);
    release(before, capacity);
    return this.base;
  }

  /** A block with some room to grow: what is a little larger each time does not move each time. */
  private take(size: usize): void {
    this.capacity = max(size + (size >> 3), 4096);
    this.base = allocate(this.capacity);
  }
}

/** Takes results too large for the arena, one at a time: the next large result overwrites it. */
export let landing: Region = new Region();

/** Gives the contents of the landing region away and takes the other block in its place. */
export function swapLanding(other: Region): Region {
  const taken = landing;
  landing = other;
  return taken;
}

/** Forgets the results of the callback before. */
// @ts-ignore: decorator
@inline
export function resetArena(): void {
  used = 0;
}

/** The host's allocator. */
export function malloc(size: usize): usize {
  const rounded = (size + 15) & ~15;
  if (rounded <= ARENA_SIZE - used) {
    const at = ARENA + used;
    used += rounded;
    return at;
  }
  return landing.reserve(size);
}

// @ts-ignore: decorator
@inline
export function resultAt(): usize {
  return <usize>load<u32>(RESULT);
}

// @ts-ignore: decorator
@inline
export function resultLength(): usize {
  return <usize>load<u32>(RESULT, 4);
}

/**
 * Copies bytes between places that do not overlap. `memory.copy` leaves the VM's own code, which costs more than to copy
 * a short text.
 */
export function copyBytes(to: usize, from: usize, length: usize): void {
  if (length >= 16) {
    if (length > 1024) return memory.copy(to, from, length);
    const last = length - 16;
    let i: usize = 0;
    for (; i + 16 < last; i += 32) {
      v128.store(to + i, v128.load(from + i));
      v128.store(to + i, v128.load(from + i, 16), 16);
    }
    if (i < last) v128.store(to + i, v128.load(from + i));
    v128.store(to + last, v128.load(from + last));
  } else if (length >= 8) {
    const first = load<u64>(from);
    store<u64>(to + length - 8, load<u64>(from + length - 8));
    store<u64>(to, first);
  } else if (length >= 4) {
    const first = load<u32>(from);
    store<u32>(to + length - 4, load<u32>(from + length - 4));
    store<u32>(to, first);
  } else {
    for (let i: usize = 0; i < length; i++) store<u8>(to + i, load<u8>(from + i));
  }
}

/** Sets a small block to zero; `size` is a multiple of 16. */
export function clearBlock(at: usize, size: usize): void {
  const last = size - 16;
  for (let i: usize = 0; i < last; i += 32) {
    v128.store(at + i, i64x2.splat(0));
    v128.store(at + i, i64x2.splat(0), 16);
  }
  v128.store(at + last, i64x2.splat(0));
}
