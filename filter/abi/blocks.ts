// Blocks of memory that can be given back, on top of the runtime's, which frees only its latest and doubles the memory when
// it is full. Taken and given back on installs and ticks, and while the number of requests in flight grows.

/** What the runtime keeps before every block. */
const OVERHEAD: usize = 4;
/** Stays free behind the last block, for the runtime's own objects. */
const SLACK: usize = 65536;

/** Blocks given back, in the order of their addresses, neighbours as one: the next (+0) and the bytes from block to block (+4). */
let spare: usize = 0;

export function allocate(size: usize): usize {
  const span = spanOf(size);
  let before: usize = 0;
  for (let at = spare; at; at = nextOf(at)) {
    if (spanAt(at) >= span) {
      const rest = spanAt(at) - span;
      if (rest) {
        put(at + span, nextOf(at), rest);
        link(before, at + span);
      } else {
        link(before, nextOf(at));
      }
      return at;
    }
    before = at;
  }
  makeRoom(span);
  return heap.alloc(size);
}

/** Takes back a block that was allocated with this size. */
export function release(at: usize, size: usize): void {
  let span = spanOf(size);
  let before: usize = 0;
  let next = spare;
  while (next && next < at) {
    before = next;
    next = nextOf(next);
  }
  if (next == at + span) {
    span += spanAt(next);
    next = nextOf(next);
  }
  if (before && before + spanAt(before) == at) return put(before, next, spanAt(before) + span);
  put(at, next, span);
  link(before, at);
}

/** Adds the pages that are missing, and no more. */
function makeRoom(span: usize): void {
  const end = heap.alloc(0);
  heap.free(end);
  const has = (<usize>memory.size()) << 16;
  const needs = end + span + SLACK;
  if (needs > has) memory.grow(<i32>((needs - has + 0xffff) >> 16));
}

/** From the block to where the next one behind it begins; the runtime aligns blocks to 16. */
// @ts-ignore: decorator
@inline
function spanOf(size: usize): usize {
  return (size + OVERHEAD + 15) & ~15;
}

function put(at: usize, next: usize, span: usize): void {
  store<u32>(at, <u32>next);
  store<u32>(at, <u32>span, 4);
}

/** Makes a block the one after `before`, or the first. */
function link(before: usize, at: usize): void {
  if (before) store<u32>(before, <u32>at);
  else spare = at;
}

// @ts-ignore: decorator
@inline
function nextOf(at: usize): usize {
  return <usize>load<u32>(at);
}

// @ts-ignore: decorator
@inline
function spanAt(at: usize): usize {
  return <usize>load<u32>(at, 4);
}
