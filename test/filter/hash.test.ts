import { expect, it } from 'vitest';
import { partModule } from '../../simulator/filter-host/build.js';
import { hashVectors, keyVectors, mixVectors } from '../../wire/hash-vectors.js';

interface Exports {
  readonly memory: WebAssembly.Memory;
  hash64(at: number, length: number, seed: bigint): bigint;
  mix64(value: bigint): bigint;
  shedPoint(hash: bigint): number;
}

const filter = new WebAssembly.Instance(partModule('hash', 'hash.ts'), { env: { abort: () => {} } })
  .exports as unknown as Exports;

function hash(text: string, seed: bigint): bigint {
  if (filter.memory.buffer.byteLength === 0) filter.memory.grow(1);
  const bytes = new TextEncoder().encode(text);
  new Uint8Array(filter.memory.buffer).set(bytes, 1024);
  return BigInt.asUintN(64, filter.hash64(1024, bytes.length, seed));
}

it('the filter hashes as the reference implementation does', () => {
  for (const vector of hashVectors) expect(hash(vector.text, vector.seed)).toBe(vector.hash);
  for (const { value, mixed } of mixVectors) expect(BigInt.asUintN(64, filter.mix64(value))).toBe(mixed);
});

it('the filter chains salt, tenant and key as the reference does', () => {
  for (const vector of keyVectors) {
    const chained = hash(vector.key, hash(vector.tenant, hash(vector.salt, 0n)));
    expect(chained).toBe(vector.hash);
    expect(filter.shedPoint(chained) >>> 0).toBe(vector.shedPoint);
  }
});
