import { hash64 } from './hash.js';
import * as L from './layout.js';
import { type Row, sectionsOf } from './snapshot-rows.js';
import { checkSnapshot } from './snapshot-rules.js';
import type { SnapshotView } from './snapshot-view.js';

/**
 * A snapshot in the binary form that filters install; equal views give equal bytes. Throws
 * WARDROP_SNAPSHOT_INVALID when the view breaks a rule of `snapshot-rules.ts`.
 */
export function encodeSnapshot(view: SnapshotView): Uint8Array {
  checkSnapshot(view);
  let end = L.HEADER_SIZE;
  const sections = sectionsOf(view).map((section) => {
    const offset = end;
    end = (offset + section.rows.length * section.rowSize + 7) & ~7;
    return { ...section, offset };
  });
  const rows = new DataView(new ArrayBuffer(end));
  const strings = new Strings(end);
  writeHeader(new RowWriter(rows, 0, strings), view);
  for (const { header, offset, rowSize, rows: writes } of sections) {
    rows.setUint32(header, offset, true);
    rows.setUint32(header + 4, writes.length, true);
    for (const [index, write] of writes.entries()) {
      write(new RowWriter(rows, offset + index * rowSize, strings));
    }
  }
  rows.setUint32(L.HEADER_STRINGS, end, true);
  rows.setUint32(L.HEADER_STRINGS + 4, strings.end - end, true);
  rows.setUint32(L.HEADER_LENGTH, strings.end, true);

  const bytes = new Uint8Array(strings.end);
  bytes.set(new Uint8Array(rows.buffer));
  strings.writeTo(bytes);
  const checksum = hash64(bytes.subarray(L.HEADER_CHECKED), 0n);
  new DataView(bytes.buffer).setBigUint64(L.HEADER_CHECKSUM, checksum, true);
  return bytes;
}

function writeHeader(row: Row, view: SnapshotView): void {
  row.u32(L.HEADER_MAGIC, L.SNAPSHOT_MAGIC);
  row.u32(L.HEADER_FORMAT, L.SNAPSHOT_FORMAT);
  row.u64(L.HEADER_VERSION, BigInt(view.version));
  row.u64(L.HEADER_PLAN_ID, BigInt(`0x${view.planId}`));
  row.u64(L.HEADER_ISSUED_AT, BigInt(view.issuedAtMs));
  row.text(L.HEADER_FRONTEND, view.frontendId);
  row.text(L.HEADER_SALT, view.salt);
  row.f64(L.HEADER_STEERED, view.steered ?? 1);
}

class RowWriter implements Row {
  readonly #out: DataView;
  readonly #at: number;
  readonly #strings: Strings;

  constructor(out: DataView, at: number, strings: Strings) {
    this.#out = out;
    this.#at = at;
    this.#strings = strings;
  }

  u32(field: number, value: number): void {
    this.#out.setUint32(this.#at + field, value, true);
  }

  i32(field: number, value: number): void {
    this.#out.setInt32(this.#at + field, value, true);
  }

  u64(field: number, value: bigint): void {
    this.#out.setBigUint64(this.#at + field, value, true);
  }

  f64(field: number, value: number): void {
    this.#out.setFloat64(this.#at + field, value, true);
  }

  text(field: number, value: string): void {
    const { offset, length } = this.#strings.place(value);
    this.u32(field, offset);
    this.u32(field + 4, length);
  }
}

interface PlacedText {
  readonly offset: number;
  /** In bytes. */
  readonly length: number;
}

/** The string table behind all rows; equal strings are stored once. */
class Strings {
  /** Where the next one goes. */
  end: number;
  readonly #placed = new Map<string, PlacedText>();

  constructor(start: number) {
    this.end = start;
  }

  place(value: string): PlacedText {
    const known = this.#placed.get(value);
    if (known !== undefined) return known;
    const placed = { offset: this.end, length: Buffer.byteLength(value) };
    this.#placed.set(value, placed);
    this.end += placed.length;
    return placed;
  }

  writeTo(out: Uint8Array): void {
    const buffer = Buffer.from(out.buffer, out.byteOffset, out.byteLength);
    for (const [value, { offset }] of this.#placed) buffer.write(value, offset);
  }
}
