/**
 * The hash of ids, keys and checksums: MurmurHash64A (Austin Appleby, public domain). The filter has its own
 * implementation; `hash-vectors.ts` ties the two together.
 */

const M = 0xc6a4a7935bd1e995n;
const R = 47n;
const MASK = 0xffffffffffffffffn;

const utf8 = new TextEncoder();

/** 64-bit hash of the bytes. The length is part of the seed, so chaining hashes through seeds frames the parts. */
export function hash64(bytes: Uint8Array, seed: bigint): bigint {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const end = bytes.length & ~7;
  let h = (seed ^ (BigInt(bytes.length) * M)) & MASK;
  for (let at = 0; at < end; at += 8) {
    let k = BigInt.asUintN(64, view.getBigUint64(at, true) * M);
    k = BigInt.asUintN(64, (k ^ (k >> R)) * M);
    h = BigInt.asUintN(64, (h ^ k) * M);
  }
  if (end < bytes.length) {
    let tail = 0n;
    for (let at = bytes.length - 1; at >= end; at--) tail = (tail << 8n) | BigInt(bytes[at]!);
    h = BigInt.asUintN(64, (h ^ tail) * M);
  }
  h = BigInt.asUintN(64, (h ^ (h >> R)) * M);
  return h ^ (h >> R);
}

/** The 64-bit name of an id or an address: hash64 of its UTF-8 bytes with seed 0. */
export function id64(text: string): bigint {
  return hash64(utf8.encode(text), 0n);
}

/** Finalizer of MurmurHash3: a bijection of 64-bit numbers in which every bit depends on every bit. */
export function mix64(value: bigint): bigint {
  let x = value;
  x = BigInt.asUintN(64, (x ^ (x >> 33n)) * 0xff51afd7ed558ccdn);
  x = BigInt.asUintN(64, (x ^ (x >> 33n)) * 0xc4ceb9fe1a85ec53n);
  return x ^ (x >> 33n);
}

/** Hash of an affinity key: salt, tenant and key chained through the seeds. */
export function keyHash(salt: string, tenant: string, key: string): bigint {
  return hash64(utf8.encode(key), hash64(utf8.encode(tenant), id64(salt)));
}

/** Where a key hash falls in the partition: a point of the 2^32 hash space. */
export function partitionPoint(hash: bigint): number {
  return Number(hash >> 32n);
}

/** What a displaced key goes by instead of its hash: as good as the hash of another key. */
export function secondHash(hash: bigint): bigint {
  return mix64(hash ^ 0xa0761d6478bd642fn);
}

/** What stands for a key among the displaced ones that has begun at the backup of its own point. */
export function awayHash(hash: bigint): bigint {
  return mix64(hash ^ 0xe7037ed1a0b428dbn);
}

/** Second, independent point of the same key: requests whose point lies below fraction x 2^32 are shed. */
export function shedPoint(hash: bigint): number {
  return Number(mix64(hash ^ 0x9e3779b97f4a7c15n) >> 32n);
}

/** Third point of a key, independent of the others: keys whose point lies below share x 2^32 are steered. */
export function steerPoint(hash: bigint): number {
  return Number(mix64(hash ^ 0xd1b54a32d192ed03n) >> 32n);
}

/**
 * Point of a key for one engine (`id64` of its id) or replica (its key in the filter), independent of the others: while
 * it lies below fraction x 2^32 the key overflows from there.
 */
export function overflowPoint(hash: bigint, place: bigint): number {
  return Number(mix64(hash ^ mix64(place ^ 0x8cb92ba72f3d8dd7n)) >> 32n);
}

/** Name of a class in usage reports: that of its pool for priority 0. */
export function classKey(pool: bigint, priority: number): bigint {
  return priority === 0 ? pool : mix64(BigInt.asUintN(64, mix64(pool) + BigInt(priority)));
}

/** Score of a replica for a key; the usable replica with the largest score serves it. */
export function replicaScore(hash: bigint, replicaSeed: bigint): bigint {
  return mix64(hash ^ replicaSeed);
}
