import { partModule } from '../../simulator/filter-host/build.js';
import * as L from '../../wire/layout.js';
import { decodeSnapshot } from '../../wire/snapshot-reader.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import type { Random } from './random.js';

interface Exports {
  readonly memory: WebAssembly.Memory;
  hash64(at: number, length: number, seed: bigint): bigint;
  validate(at: number, size: number, frontendAt: number, frontendLength: number, readBodies: number): number;
  adopt(at: number, now: bigint): void;
}

/** Beyond what the module uses itself; two places, as the one in force must stay while the next is adopted. */
const PAGES = 64;
const FRONTEND_AT = 40 * 65_536;
const INPUTS = [42 * 65_536, 52 * 65_536];
/** The reference reader is slow: it judges one in this many. */
const JUDGED = 200;

/** Offers damaged snapshots with the right checksum. Resolves to the number that were taken. */
export function fuzzSnapshots(inputs: number, random: Random): number {
  const module = partModule('snapshot', 'snapshot/validate.ts', 'snapshot/current.ts', 'hash.ts');
  const nothing = new Proxy({}, { get: () => () => 0 });
  const reader = new WebAssembly.Instance(module, { env: nothing, wasi_snapshot_preview1: nothing })
    .exports as unknown as Exports;
  reader.memory.grow(PAGES);
  const memory = Buffer.from(reader.memory.buffer);
  memory.write('west', FRONTEND_AT);
  const bases = views().map((view) => Buffer.from(encodeSnapshot(view)));
  let taken = 0;
  let now = 1n;
  for (let i = 0; i < inputs; i++) {
    const at = INPUTS[taken % 2]!;
    const base = random.oneOf(bases);
    base.copy(memory, at);
    let size = base.length;
    for (let changes = random.below(4); changes > 0; changes--) damage(memory, at, base.length, random);
    if (random.below(20) === 0) size = random.below(base.length + 1);
    if (size >= L.HEADER_SIZE) {
      memory.writeUInt32LE(size, at + L.HEADER_LENGTH);
      const sum = BigInt.asUintN(64, reader.hash64(at + L.HEADER_CHECKED, size - L.HEADER_CHECKED, 0n));
      memory.writeBigUInt64LE(sum, at + L.HEADER_CHECKSUM);
    }
    const isTaken = reader.validate(at, size, FRONTEND_AT, 4, 1) === 0;
    if (i % JUDGED === 0) judge(memory.subarray(at, at + size), isTaken);
    if (!isTaken) continue;
    taken++;
    // Rows of names that are gone are forgotten after a minute.
    now += 61_000n;
    reader.adopt(at, now);
    if (reader.memory.buffer.byteLength !== memory.byteLength) throw new Error('installing made memory grow');
  }
  return taken;
}

/** The filter may take more than the strict reader (names are not checked for controls), but never less. */
function judge(bytes: Uint8Array, isTaken: boolean): void {
  let isSound = true;
  try {
    decodeSnapshot(bytes.slice());
  } catch {
    isSound = false;
  }
  const isOurs = isSound && decodeSnapshot(bytes.slice()).frontendId === 'west';
  if (isOurs && !isTaken)
    throw new Error(`refused a sound snapshot: ${Buffer.from(bytes).toString('base64')}`);
}

function damage(memory: Buffer, at: number, length: number, random: Random): void {
  const place = at + 16 + random.below(length - 16);
  switch (random.below(4)) {
    case 0:
      memory[place] = random.below(256);
      break;
    case 1:
      memory[place]! ^= 1 << random.below(8);
      break;
    case 2:
      memory.writeUInt32LE(random.oneOf([0, 1, 2, 0x7fffffff, 0xffffffff, length]), place & ~3);
      break;
    default:
      memory.copyWithin(place, at + random.below(length), at + random.below(length));
  }
}

function views(): SnapshotView[] {
  const common = { version: 3, planId: '00000000000000aa', issuedAtMs: 1, frontendId: 'west', salt: 's' };
  const engines = ['a', 'b', 'c'].map((id, at) => ({
    id,
    ...(at === 1 && { overflow: 0.5, replicaLimit: 3, busyAbove: 2 }),
    replicas: [0, 1].map((port) => ({ address: `10.0.${at}.1:${8000 + port}`, ready: port === 0 })),
  }));
  const pool = {
    id: 'm',
    cluster: 'm',
    engines: [0, 1, 2],
    segments: [
      { start: 0, owner: 0, backup: 1 },
      { start: 2 ** 31, owner: 2, backup: -1 },
    ],
    retryRatio: 0.2,
    shedFraction: 0,
  };
  const needs = [
    { id: 'eu', when: { kind: 'header' as const, name: 'x-region', value: 'eu' } },
    { id: 'long', when: { kind: 'promptTokens' as const, above: 9 } },
  ];
  return [
    { ...common, models: [], pools: [], engines: [] },
    { ...common, models: [{ name: 'm', pool: 0 }], pools: [pool], engines, nearest: [2, 0] },
    {
      ...common,
      steered: 0.5,
      needs,
      classRules: [{ need: 0, priority: -5 }],
      models: [
        { name: 'm', pool: 0, needs: [0, 1], pools: [0, 1, -1, 1] },
        { name: 'n', pool: 1 },
      ],
      pools: [
        { ...pool, otherClasses: [{ priority: -5, retryRatio: 0, shedFraction: 1 }] },
        {
          ...pool,
          id: 'm~eu',
          cluster: 'm~eu',
          engines: [1],
          segments: [{ start: 0, owner: 1, backup: -1 }],
        },
      ],
      engines,
      nearest: [0, 1, 2],
    },
  ];
}
