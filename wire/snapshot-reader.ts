import { WardropError } from '../xds-server/errors.js';
import { hash64, id64 } from './hash.js';
import * as L from './layout.js';
import { checkSnapshot } from './snapshot-rules.js';
import {
  bodyFeatures,
  type ClassRule,
  type NeedCondition,
  type SnapshotClass,
  type SnapshotEngine,
  type SnapshotModel,
  type SnapshotNeed,
  type SnapshotPool,
  type SnapshotView,
} from './snapshot-view.js';

/**
 * The view that a snapshot was written from, models sorted by name. Refuses what the filter refuses: throws
 * WARDROP_SNAPSHOT_INVALID for anything `encodeSnapshot` cannot have written.
 */
export function decodeSnapshot(bytes: Uint8Array): SnapshotView {
  const view = new Reader(bytes).read();
  checkSnapshot(view);
  return view;
}

interface Section {
  readonly offset: number;
  readonly count: number;
}

class Reader {
  readonly #bytes: Uint8Array;
  readonly #data: DataView;
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  #strings: Section = { offset: 0, count: 0 };

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  read(): SnapshotView {
    const data = this.#data;
    check(data.byteLength >= L.HEADER_SIZE, 'is shorter than its header');
    check(data.getUint32(L.HEADER_MAGIC, true) === L.SNAPSHOT_MAGIC, 'does not begin with the magic number');
    const format = data.getUint32(L.HEADER_FORMAT, true);
    check(format === L.SNAPSHOT_FORMAT, `has format ${format} instead of ${L.SNAPSHOT_FORMAT}`);
    check(data.getUint32(L.HEADER_LENGTH, true) === data.byteLength, 'is not as long as its header says');
    const checksum = hash64(this.#bytes.subarray(L.HEADER_CHECKED), 0n);
    check(data.getBigUint64(L.HEADER_CHECKSUM, true) === checksum, 'does not match its checksum');

    const modelRows = this.#section(L.HEADER_MODELS, L.MODEL_SIZE);
    const poolRows = this.#section(L.HEADER_POOLS, L.POOL_SIZE);
    const poolEngineRows = this.#section(L.HEADER_POOL_ENGINES, L.POOL_ENGINE_SIZE);
    const segmentRows = this.#section(L.HEADER_SEGMENTS, L.SEGMENT_SIZE);
    const engineRows = this.#section(L.HEADER_ENGINES, L.ENGINE_SIZE);
    const replicaRows = this.#section(L.HEADER_REPLICAS, L.REPLICA_SIZE);
    const needRows = this.#section(L.HEADER_NEEDS, L.NEED_SIZE);
    const modelNeedRows = this.#section(L.HEADER_MODEL_NEEDS, L.MODEL_NEED_SIZE);
    const modelPoolRows = this.#section(L.HEADER_MODEL_POOLS, L.MODEL_POOL_SIZE);
    const classRows = this.#section(L.HEADER_CLASSES, L.CLASS_SIZE);
    const ruleRows = this.#section(L.HEADER_CLASS_RULES, L.RULE_SIZE);
    const nearestRows = this.#section(L.HEADER_NEAREST, L.NEAREST_SIZE);
    this.#strings = this.#section(L.HEADER_STRINGS, 1);
    const needs = this.#rows(needRows, L.NEED_SIZE, (at) => this.#need(at));
    const steered = data.getFloat64(L.HEADER_STEERED, true);
    const classRules = this.#rows(
      ruleRows,
      L.RULE_SIZE,
      (at): ClassRule => ({
        need: this.#u32(at + L.RULE_NEED),
        priority: data.getInt32(at + L.RULE_PRIORITY, true),
      }),
    );
    const nearest = this.#rows(nearestRows, L.NEAREST_SIZE, (at) => this.#u32(at));

    return {
      version: Number(data.getBigUint64(L.HEADER_VERSION, true)),
      planId: data.getBigUint64(L.HEADER_PLAN_ID, true).toString(16).padStart(16, '0'),
      issuedAtMs: Number(data.getBigUint64(L.HEADER_ISSUED_AT, true)),
      frontendId: this.#text(L.HEADER_FRONTEND),
      salt: this.#text(L.HEADER_SALT),
      ...(steered !== 1 && { steered }),
      models: this.#models(modelRows, modelNeedRows, modelPoolRows),
      pools: this.#pools(poolRows, poolEngineRows, segmentRows, classRows),
      engines: this.#engines(engineRows, replicaRows),
      ...(needs.length > 0 && { needs }),
      ...(classRules.length > 0 && { classRules }),
      ...(nearest.length > 0 && { nearest }),
    };
  }

  #models(rows: Section, needRows: Section, poolRows: Section): SnapshotModel[] {
    const needRun = new Runs(needRows, L.MODEL_NEED_SIZE);
    const poolRun = new Runs(poolRows, L.MODEL_POOL_SIZE);
    let previous = -1n;
    const models = this.#rows(rows, L.MODEL_SIZE, (at) => {
      const hash = this.#data.getBigUint64(at + L.MODEL_HASH, true);
      const name = this.#text(at + L.MODEL_NAME);
      check(hash === id64(name) && hash > previous, 'has a model with a wrong hash or out of order');
      previous = hash;
      const count = this.#u32(at + L.MODEL_NEEDS_COUNT);
      check(count <= L.MAX_MODEL_NEEDS, 'has a model with too many needs');
      const needs = this.#rows(
        needRun.next(this.#u32(at + L.MODEL_NEEDS_START), count),
        L.MODEL_NEED_SIZE,
        (row) => this.#u32(row),
      );
      const pools = this.#rows(
        poolRun.next(this.#u32(at + L.MODEL_POOLS_START), 2 ** count),
        L.MODEL_POOL_SIZE,
        (row) => {
          const pool = this.#u32(row);
          return pool === L.NO_POOL ? -1 : pool;
        },
      );
      return { name, pool: pools[0]!, ...(count > 0 && { needs, pools }) };
    });
    needRun.end();
    poolRun.end();
    return models.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  #need(at: number): SnapshotNeed {
    return { id: this.#text(at + L.NEED_ID), when: this.#condition(at) };
  }

  #condition(at: number): NeedCondition {
    const number = this.#u32(at + L.NEED_NUMBER);
    const name = this.#text(at + L.NEED_NAME);
    const value = this.#text(at + L.NEED_VALUE);
    switch (this.#u32(at + L.NEED_KIND)) {
      case L.NEED_BY_HEADER:
        return value === '' ? { kind: 'header', name } : { kind: 'header', name, value };
      case L.NEED_BY_PATH:
        return { kind: 'path', prefix: value };
      case L.NEED_BY_TENANT:
        return { kind: 'tenant', value };
      case L.NEED_BY_BODY: {
        const feature = bodyFeatures[number];
        if (feature === undefined) return refuse('has a need for an unknown feature of the body');
        return { kind: 'body', feature };
      }
      case L.NEED_BY_PROMPT_TOKENS:
        return { kind: 'promptTokens', above: number };
      case L.NEED_BY_TOTAL_TOKENS:
        return { kind: 'totalTokens', above: number };
      case L.NEED_BY_SERVICE_TIER:
        return { kind: 'serviceTier', value };
      case L.NEED_BY_PRIORITY:
        return { kind: 'priority', above: number };
      default:
        return refuse('has a need of an unknown kind');
    }
  }

  #pools(rows: Section, poolEngineRows: Section, segmentRows: Section, classRows: Section): SnapshotPool[] {
    const classRun = new Runs(classRows, L.CLASS_SIZE);
    const engineRun = new Runs(poolEngineRows, L.POOL_ENGINE_SIZE);
    const segmentRun = new Runs(segmentRows, L.SEGMENT_SIZE);
    const pools = this.#rows(rows, L.POOL_SIZE, (at) => {
      const engines = engineRun.next(
        this.#u32(at + L.POOL_ENGINES_START),
        this.#u32(at + L.POOL_ENGINES_COUNT),
      );
      const segments = segmentRun.next(
        this.#u32(at + L.POOL_SEGMENTS_START),
        this.#u32(at + L.POOL_SEGMENTS_COUNT),
      );
      const classes = classRun.next(
        this.#u32(at + L.POOL_CLASSES_START),
        this.#u32(at + L.POOL_CLASSES_COUNT),
      );
      const [first, ...others] = this.#rows(classes, L.CLASS_SIZE, (row) => this.#class(row));
      if (first?.priority !== 0) return refuse('has a pool without a class of priority 0');
      const id = this.#text(at + L.POOL_ID);
      check(this.#data.getBigUint64(at + L.POOL_HASH, true) === id64(id), 'has a pool with a wrong hash');
      return {
        id,
        cluster: this.#text(at + L.POOL_CLUSTER),
        engines: this.#rows(engines, L.POOL_ENGINE_SIZE, (row) => this.#u32(row)),
        segments: this.#rows(segments, L.SEGMENT_SIZE, (row) => {
          const backup = this.#u32(row + L.SEGMENT_BACKUP);
          return {
            start: this.#u32(row + L.SEGMENT_START),
            owner: this.#u32(row + L.SEGMENT_OWNER),
            backup: backup === L.NO_ENGINE ? -1 : backup,
          };
        }),
        retryRatio: first.retryRatio,
        shedFraction: first.shedFraction,
        ...(others.length > 0 && { otherClasses: others }),
      };
    });
    classRun.end();
    engineRun.end();
    segmentRun.end();
    return pools;
  }

  #class(at: number): SnapshotClass {
    return {
      priority: this.#data.getInt32(at + L.CLASS_PRIORITY, true),
      retryRatio: this.#data.getFloat64(at + L.CLASS_RETRY_RATIO, true),
      shedFraction: this.#data.getFloat64(at + L.CLASS_SHED_FRACTION, true),
    };
  }

  #engines(rows: Section, replicaRows: Section): SnapshotEngine[] {
    const replicaRun = new Runs(replicaRows, L.REPLICA_SIZE);
    const engines = this.#rows(rows, L.ENGINE_SIZE, (at) => {
      const id = this.#text(at + L.ENGINE_ID);
      check(
        this.#data.getBigUint64(at + L.ENGINE_HASH, true) === id64(id),
        'has an engine with a wrong hash',
      );
      const replicas = replicaRun.next(
        this.#u32(at + L.ENGINE_REPLICAS_START),
        this.#u32(at + L.ENGINE_REPLICAS_COUNT),
      );
      const overflow = this.#data.getFloat64(at + L.ENGINE_OVERFLOW, true);
      const replicaLimit = this.#data.getFloat64(at + L.ENGINE_REPLICA_LIMIT, true);
      const probePath = this.#text(at + L.ENGINE_PROBE);
      const busyAbove = this.#data.getFloat64(at + L.ENGINE_BUSY, true);
      return {
        id,
        ...(overflow !== 0 && { overflow }),
        ...(replicaLimit !== Number.POSITIVE_INFINITY && { replicaLimit }),
        ...(probePath !== '' && { probePath }),
        ...(busyAbove !== Number.POSITIVE_INFINITY && { busyAbove }),
        replicas: this.#rows(replicas, L.REPLICA_SIZE, (row) => {
          const address = this.#text(row + L.REPLICA_ADDRESS);
          const seed = this.#data.getBigUint64(row + L.REPLICA_SEED, true);
          check(seed === id64(address), 'has a replica with a wrong seed');
          const overflow = this.#data.getFloat64(row + L.REPLICA_OVERFLOW, true);
          return {
            address,
            ready: (this.#u32(row + L.REPLICA_FLAGS) & L.REPLICA_READY) !== 0,
            ...(overflow !== 0 && { overflow }),
          };
        }),
      };
    });
    replicaRun.end();
    return engines;
  }

  #section(header: number, rowSize: number): Section {
    const offset = this.#u32(header);
    const count = this.#u32(header + 4);
    check(offset >= L.HEADER_SIZE && offset % 8 === 0, 'has a misplaced section');
    check(rowSize === 1 || count <= L.MAX_ROWS, 'has too many rows');
    check(offset + count * rowSize <= this.#data.byteLength, 'has a section that runs past its end');
    return { offset, count };
  }

  #rows<T>(section: Section, rowSize: number, read: (at: number) => T): T[] {
    return Array.from({ length: section.count }, (_, index) => read(section.offset + index * rowSize));
  }

  #text(at: number): string {
    const offset = this.#u32(at);
    const length = this.#u32(at + 4);
    const { offset: start, count } = this.#strings;
    check(offset >= start && offset + length <= start + count, 'has a text outside its strings');
    check(length <= L.MAX_NAME_BYTES, 'has a text that is too long');
    try {
      return this.#utf8.decode(this.#bytes.subarray(offset, offset + length));
    } catch (cause) {
      throw new WardropError('WARDROP_SNAPSHOT_INVALID', 'snapshot has a text that is not UTF-8', { cause });
    }
  }

  #u32(at: number): number {
    return this.#data.getUint32(at, true);
  }
}

/** Cuts a section into runs of rows that must adjoin and use it up. */
class Runs {
  readonly #section: Section;
  readonly #rowSize: number;
  #taken = 0;

  constructor(section: Section, rowSize: number) {
    this.#section = section;
    this.#rowSize = rowSize;
  }

  next(start: number, count: number): Section {
    check(start === this.#taken && count <= this.#section.count - start, 'has a run of rows out of place');
    this.#taken += count;
    return { offset: this.#section.offset + start * this.#rowSize, count };
  }

  end(): void {
    check(this.#taken === this.#section.count, 'has rows that belong to nothing');
  }
}

function check(holds: boolean, complaint: string): void {
  if (!holds) refuse(complaint);
}

function refuse(complaint: string): never {
  throw new WardropError('WARDROP_SNAPSHOT_INVALID', `snapshot ${complaint}`);
}
