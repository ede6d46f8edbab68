// The filter's side of `wire/hash.ts`.

const M: u64 = 0xc6a4a7935bd1e995;

/** MurmurHash64A. */
export function hash64(at: usize, length: usize, seed: u64): u64 {
  let h = seed ^ (<u64>length * M);
  const end = at + (length & ~7);
  while (at < end) {
    let k = load<u64>(at) * M;
    k = (k ^ (k >> 47)) * M;
    h = (h ^ k) * M;
    at += 8;
  }
  const rest = length & 7;
  if (rest) {
    let tail: u64 = 0;
    if (length > 8) {
      // The last eight bytes, without those already taken.
      tail = load<u64>(at + rest - 8) >> (<u64>(8 - rest) << 3);
    } else if (length >= 4) {
      // Two halves, which may overlap.
      tail = <u64>load<u32>(at) | (<u64>load<u32>(at + length - 4) << (<u64>(length - 4) << 3));
    } else {
      for (let i = rest; i > 0; i--) tail = (tail << 8) | <u64>load<u8>(at + i - 1);
    }
    h = (h ^ tail) * M;
  }
  h = (h ^ (h >> 47)) * M;
  return h ^ (h >> 47);
}

// @ts-ignore: decorator
@inline
export function mix64(value: u64): u64 {
  let x = value;
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33);
}

/** Where a key hash falls in the partition. */
// @ts-ignore: decorator
@inline
export function partitionPoint(hash: u64): u32 {
  return <u32>(hash >> 32);
}

/** What a displaced key goes by instead of its hash: as good as the hash of another key. */
// @ts-ignore: decorator
@inline
export function secondHash(hash: u64): u64 {
  return mix64(hash ^ 0xa0761d6478bd642f);
}

/** What stands for a key in the table of displaced ones that has begun at the backup of its own point. */
// @ts-ignore: decorator
@inline
export function awayHash(hash: u64): u64 {
  return mix64(hash ^ 0xe7037ed1a0b428db);
}

/** The second point of a key hash, independent of the first. */
// @ts-ignore: decorator
@inline
export function shedPoint(hash: u64): u32 {
  return <u32>(mix64(hash ^ 0x9e3779b97f4a7c15) >> 32);
}

/** The third: decides whether a key is steered. */
// @ts-ignore: decorator
@inline
export function steerPoint(hash: u64): u32 {
  return <u32>(mix64(hash ^ 0xd1b54a32d192ed03) >> 32);
}

/** Mark of an engine or a replica, made once from its key, by which `overflowPoint` differs from place to place. */
export function overflowMark(place: u64): u64 {
  return mix64(place ^ 0x8cb92ba72f3d8dd7);
}

/** Another point for each place with a mark: while it lies below the place's fraction, the key overflows from there. */
// @ts-ignore: decorator
@inline
export function overflowPoint(hash: u64, mark: u64): u32 {
  return <u32>(mix64(hash ^ mark) >> 32);
}

/** Name of a class: that of its pool for priority 0. */
export function classKey(pool: u64, priority: i32): u64 {
  return priority == 0 ? pool : mix64(mix64(pool) + <u64>(<i64>priority));
}
