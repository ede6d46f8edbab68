import { endianness } from 'node:os';

// What signals know is saved as plain values that JSON can carry, apart from numbers that it has no words for (infinity,
// NaN, -0): those are up to who writes them. Long rows of numbers are packed, as JSON takes several times as long for them.

/** Something that can go on elsewhere: `restore` on a new one takes over all that `save` tells. */
interface Savable<S> {
  save(): S;
  restore(saved: S): void;
}

type Entries<K, V> = readonly (readonly [K, V])[];

export function saveEntries<K, S>(things: ReadonlyMap<K, { save(): S }>): Entries<K, S> {
  return [...things].map(([key, thing]) => [key, thing.save()]);
}

/** Fills a map with what was saved of the things in it. */
export function restoreEntries<K, S, T extends Savable<S>>(
  things: Map<K, T>,
  saved: Entries<K, S>,
  create: () => T,
): void {
  things.clear();
  for (const [key, each] of saved) {
    const thing = create();
    thing.restore(each);
    things.set(key, thing);
  }
}

/** Puts these entries in the place of all others. */
export function refill<K, V>(map: Map<K, V>, entries: Entries<K, V>): void {
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

const IS_BIG_ENDIAN = endianness() === 'BE';

/** Little-endian doubles in base64. */
export function pack(numbers: Float64Array | readonly number[]): string {
  const { buffer, byteOffset, byteLength } =
    numbers instanceof Float64Array ? numbers : Float64Array.from(numbers);
  const bytes = Buffer.from(buffer, byteOffset, byteLength);
  return (IS_BIG_ENDIAN ? Buffer.from(bytes).swap64() : bytes).toString('base64');
}

export function unpack(text: string): number[] {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readDoubleLE(at * 8));
}

/** Rows of the same numbers, one after the other. */
export function packRows<Name extends string>(
  rows: readonly { readonly [N in Name]: number }[],
  names: readonly Name[],
): string {
  const numbers = new Float64Array(rows.length * names.length);
  let at = 0;
  for (const row of rows) for (const name of names) numbers[at++] = row[name];
  return pack(numbers);
}

export function unpackRows<Name extends string>(
  text: string,
  names: readonly Name[],
): Record<Name, number>[] {
  const numbers = unpack(text);
  return Array.from({ length: numbers.length / names.length }, (_, row) => {
    const values = names.map((name, at) => [name, numbers[row * names.length + at]!]);
    return Object.fromEntries(values) as Record<Name, number>;
  });
}

/** 64-bit hashes, as little-endian integers in base64. */
export function packHashes(hashes: readonly bigint[]): string {
  const bytes = Buffer.allocUnsafe(hashes.length * 8);
  for (const [at, hash] of hashes.entries()) bytes.writeBigUInt64LE(hash, at * 8);
  return bytes.toString('base64');
}

export function unpackHashes(text: string): bigint[] {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: bytes.length / 8 }, (_, at) => bytes.readBigUInt64LE(at * 8));
}
