import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { anySnapshot } from '../test/filter/any-snapshot.js';
import { hash64 } from './hash.js';
import * as L from './layout.js';
import { decodeSnapshot } from './snapshot-reader.js';
import type { SnapshotNeed, SnapshotView } from './snapshot-view.js';
import { encodeSnapshot } from './snapshot-writer.js';

const view: SnapshotView = {
  version: 7,
  planId: '00ff00ff00ff00ff',
  issuedAtMs: 1_700_000_000_000,
  frontendId: 'west',
  salt: 'pepper',
  models: [{ name: 'llama-70b', pool: 0 }],
  pools: [
    {
      id: 'llama-70b',
      cluster: 'llama-70b',
      engines: [0, 1],
      segments: [
        { start: 0, owner: 0, backup: 1 },
        { start: 2 ** 31, owner: 1, backup: -1 },
      ],
      retryRatio: 0.2,
      shedFraction: 0,
    },
  ],
  engines: [
    { id: 'a', replicas: [{ address: '10.0.0.1:8000', ready: true }] },
    { id: 'b', replicas: [{ address: '[fd00::2]:8000', ready: false }] },
  ],
};
const pool = view.pools[0]!;
const need: SnapshotNeed = { id: 'eu', when: { kind: 'header', name: 'x-region', value: 'eu' } };

describe('a snapshot', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(anySnapshot, (any) => {
        expect(decodeSnapshot(encodeSnapshot(any))).toEqual(any);
      }),
    );
  });

  it('has the same bytes for the same view', () => {
    fc.assert(
      fc.property(anySnapshot, (any) => {
        expect(encodeSnapshot(structuredClone(any))).toEqual(encodeSnapshot(any));
      }),
    );
  });

  it('is refused when any bit of it is flipped', () => {
    fc.assert(
      fc.property(anySnapshot, fc.nat(), fc.nat(7), (any, at, bit) => {
        const bytes = encodeSnapshot(any);
        bytes[at % bytes.length]! ^= 1 << bit;
        // Four bytes of the header are reserved and checked by nobody.
        fc.pre(at % bytes.length < 12 || at % bytes.length >= L.HEADER_CHECKSUM);
        expect(() => decodeSnapshot(bytes)).toThrow(/^snapshot /);
      }),
    );
  });

  it('is refused when it is cut short or goes on', () => {
    const bytes = encodeSnapshot(view);
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeSnapshot(bytes.subarray(0, length))).toThrow(/^snapshot /);
    }
    const longer = new Uint8Array(bytes.length + 1);
    longer.set(bytes);
    expect(() => decodeSnapshot(longer)).toThrow(/^snapshot /);
  });

  it('is refused with a coded error, whatever number replaces one of its own under a right checksum', () => {
    const bytes = encodeSnapshot(view);
    fc.assert(
      fc.property(
        fc.integer({ min: L.HEADER_CHECKED / 4, max: bytes.length / 4 - 1 }),
        fc.oneof(fc.integer({ min: 0, max: 2 ** 32 - 1 }), fc.nat(300)),
        (word, value) => {
          const forged = bytes.slice();
          const data = new DataView(forged.buffer);
          data.setUint32(word * 4, value, true);
          data.setBigUint64(L.HEADER_CHECKSUM, hash64(forged.subarray(L.HEADER_CHECKED), 0n), true);
          try {
            decodeSnapshot(forged);
          } catch (error) {
            expect(error).toMatchObject({ code: 'WARDROP_SNAPSHOT_INVALID' });
          }
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each<[string, Partial<SnapshotView>]>([
    ['version', { version: 0 }],
    ['planId', { planId: 'FF00FF00FF00FF00' }],
    ['frontendId', { frontendId: 'a b' }],
    ['salt', { salt: 'x'.repeat(257) }],
    ['models[0].pools[0]', { models: [{ name: 'm', pool: 1 }] }],
    ['models[0].needs[0]', { models: [{ name: 'm', pool: 0, needs: [0], pools: [0, -1] }] }],
    ['models[0].pools', { models: [{ name: 'm', pool: 0, needs: [0] }], needs: [need] }],
    ['models[0].pool', { models: [{ name: 'm', pool: 0, needs: [0], pools: [-1, 0] }], needs: [need] }],
    ['needs[1].id', { needs: [need, need] }],
    ['needs[0].when.name', { needs: [{ id: 'eu', when: { kind: 'header', name: 'X-Region' } }] }],
    ['needs[0].when.above', { needs: [{ id: 'long', when: { kind: 'promptTokens', above: -1 } }] }],
    ['models[0].name', { models: [{ name: 'm\n', pool: 0 }] }],
    [
      'models[1].name',
      {
        models: [
          { name: 'm', pool: 0 },
          { name: 'm', pool: 0 },
        ],
      },
    ],
    ['pools[0].retryRatio', { pools: [{ ...pool, retryRatio: Number.NaN }] }],
    ['pools[0].shedFraction', { pools: [{ ...pool, shedFraction: 1.5 }] }],
    ['pools[0].cluster', { pools: [{ ...pool, cluster: 'a\r\nb' }] }],
    ['pools[0].engines[1]', { pools: [{ ...pool, engines: [1, 0], segments: [] }] }],
    ['pools[0].segments[0].start', { pools: [{ ...pool, segments: [{ start: 1, owner: 0, backup: -1 }] }] }],
    ['pools[0].segments[0].owner', { pools: [{ ...pool, engines: [1] }] }],
    ['pools[0].segments[0].backup', { pools: [{ ...pool, segments: [{ start: 0, owner: 0, backup: 0 }] }] }],
    ['engines[1].id', { engines: [view.engines[0]!, view.engines[0]!] }],
    ['engines[0].id', { engines: [{ id: 'x'.repeat(65), replicas: [] }, view.engines[1]!] }],
    [
      'engines[0].replicas[0].address',
      {
        engines: [{ id: 'a', replicas: [{ address: '1.2.3.4:5,6.7.8.9:0', ready: true }] }, view.engines[1]!],
      },
    ],
  ])('cannot be written when it breaks the rule of %s', (path, change) => {
    expect(() => encodeSnapshot({ ...view, ...change })).toThrow(`snapshot ${path}: `);
  });
});
