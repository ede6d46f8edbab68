import * as L from './layout.js';

/** Keys that other Envoys of a frontend have displaced, at most `MAX_DISPLACED_ROWS`, and up to where these are all. */
export interface DisplacedKeys {
  readonly hashes: readonly bigint[];
  readonly cursor: number;
}

/** The body of an answer to a sync call that brings no snapshot. */
export function encodeDisplaced({ hashes, cursor }: DisplacedKeys): Uint8Array {
  const out = new DataView(new ArrayBuffer(L.DISPLACED_HEADER_SIZE + hashes.length * 8));
  out.setUint32(0, L.DISPLACED_MAGIC, true);
  out.setUint32(4, L.DISPLACED_FORMAT, true);
  out.setUint32(L.DISPLACED_ROWS, hashes.length, true);
  out.setBigUint64(L.DISPLACED_CURSOR, BigInt(cursor), true);
  for (const [index, hash] of hashes.entries())
    out.setBigUint64(L.DISPLACED_HEADER_SIZE + index * 8, hash, true);
  return new Uint8Array(out.buffer);
}
