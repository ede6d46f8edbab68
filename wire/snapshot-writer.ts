import { hash64, id64 } from './hash.js';
import * as L from './layout.js';
import { checkSnapshot } from './snapshot-rules.js';
import {
  bodyFeatures,
  type NeedCondition,
  type SnapshotClass,
  type SnapshotPool,
  type SnapshotView,
} from './snapshot-view.js';

/**
 * A snapshot in the binary form that filters install; equal views give equal bytes. Throws
 * WARDROP_SNAPSHOT_INVALID when the view breaks a rule of `snapshot-rules.ts`.
 */
export function encodeSnapshot(view: SnapshotView): Uint8Array {
  checkSnapshot(view);
  const strings = new Strings();
  const models = view.models
    .map((model) => ({ ...model, hash: id64(model.name) }))
    .sort((a, b) => (a.hash < b.hash ? -1 : 1));
  const needs = view.needs ?? [];
  const modelNeeds = models.flatMap((model) => model.needs ?? []);
  const modelPools = models.flatMap((model) => model.pools ?? [model.pool]);
  const poolEngines = view.pools.flatMap((pool) => pool.engines);
  const segments = view.pools.flatMap((pool) => pool.segments);
  const replicas = view.engines.flatMap((engine) => engine.replicas);
  const classes = view.pools.flatMap(classesOf);
  const rules = view.classRules ?? [];
  const nearest = view.nearest ?? [];

  const layout = new Sections();
  const modelsAt = layout.add(L.HEADER_MODELS, models.length, L.MODEL_SIZE);
  const poolsAt = layout.add(L.HEADER_POOLS, view.pools.length, L.POOL_SIZE);
  const poolEnginesAt = layout.add(L.HEADER_POOL_ENGINES, poolEngines.length, L.POOL_ENGINE_SIZE);
  const segmentsAt = layout.add(L.HEADER_SEGMENTS, segments.length, L.SEGMENT_SIZE);
  const enginesAt = layout.add(L.HEADER_ENGINES, view.engines.length, L.ENGINE_SIZE);
  const replicasAt = layout.add(L.HEADER_REPLICAS, replicas.length, L.REPLICA_SIZE);

  const needsAt = layout.add(L.HEADER_NEEDS, needs.length, L.NEED_SIZE);
  const modelNeedsAt = layout.add(L.HEADER_MODEL_NEEDS, modelNeeds.length, L.MODEL_NEED_SIZE);
  const modelPoolsAt = layout.add(L.HEADER_MODEL_POOLS, modelPools.length, L.MODEL_POOL_SIZE);
  const classesAt = layout.add(L.HEADER_CLASSES, classes.length, L.CLASS_SIZE);
  const rulesAt = layout.add(L.HEADER_CLASS_RULES, rules.length, L.RULE_SIZE);
  const nearestAt = layout.add(L.HEADER_NEAREST, nearest.length, L.NEAREST_SIZE);

  const stringsAt = layout.end;
  const out = new DataView(new ArrayBuffer(stringsAt + strings.measure(view)));
  const text = (at: number, value: string) => strings.write(out, at, stringsAt, value);

  out.setUint32(L.HEADER_MAGIC, L.SNAPSHOT_MAGIC, true);
  out.setUint32(L.HEADER_FORMAT, L.SNAPSHOT_FORMAT, true);
  out.setBigUint64(L.HEADER_VERSION, BigInt(view.version), true);
  out.setBigUint64(L.HEADER_PLAN_ID, BigInt(`0x${view.planId}`), true);
  out.setBigUint64(L.HEADER_ISSUED_AT, BigInt(view.issuedAtMs), true);
  text(L.HEADER_FRONTEND, view.frontendId);
  text(L.HEADER_SALT, view.salt);
  out.setFloat64(L.HEADER_STEERED, view.steered ?? 1, true);
  layout.write(out);

  let needsStart = 0;
  let poolsStart = 0;
  for (const [index, model] of models.entries()) {
    const at = modelsAt + index * L.MODEL_SIZE;
    const count = model.needs?.length ?? 0;
    out.setBigUint64(at + L.MODEL_HASH, model.hash, true);
    text(at + L.MODEL_NAME, model.name);
    out.setUint32(at + L.MODEL_NEEDS_START, needsStart, true);
    out.setUint32(at + L.MODEL_NEEDS_COUNT, count, true);
    out.setUint32(at + L.MODEL_POOLS_START, poolsStart, true);
    needsStart += count;
    poolsStart += 2 ** count;
  }
  for (const [index, need] of modelNeeds.entries()) {
    out.setUint32(modelNeedsAt + index * L.MODEL_NEED_SIZE, need, true);
  }
  for (const [index, pool] of modelPools.entries()) {
    out.setUint32(modelPoolsAt + index * L.MODEL_POOL_SIZE, pool === -1 ? L.NO_POOL : pool, true);
  }
  for (const [index, need] of needs.entries()) {
    const at = needsAt + index * L.NEED_SIZE;
    const { kind, number, name, value } = conditionRow(need.when);
    text(at + L.NEED_ID, need.id);
    out.setUint32(at + L.NEED_KIND, kind, true);
    out.setUint32(at + L.NEED_NUMBER, number, true);
    text(at + L.NEED_NAME, name);
    text(at + L.NEED_VALUE, value);
  }
  let enginesStart = 0;
  let segmentsStart = 0;
  let classesStart = 0;
  for (const [index, pool] of view.pools.entries()) {
    const at = poolsAt + index * L.POOL_SIZE;
    out.setBigUint64(at + L.POOL_HASH, id64(pool.id), true);
    text(at + L.POOL_ID, pool.id);
    text(at + L.POOL_CLUSTER, pool.cluster);
    out.setUint32(at + L.POOL_ENGINES_START, enginesStart, true);
    out.setUint32(at + L.POOL_ENGINES_COUNT, pool.engines.length, true);
    out.setUint32(at + L.POOL_SEGMENTS_START, segmentsStart, true);
    out.setUint32(at + L.POOL_SEGMENTS_COUNT, pool.segments.length, true);
    const classCount = 1 + (pool.otherClasses?.length ?? 0);
    out.setUint32(at + L.POOL_CLASSES_START, classesStart, true);
    out.setUint32(at + L.POOL_CLASSES_COUNT, classCount, true);
    enginesStart += pool.engines.length;
    segmentsStart += pool.segments.length;
    classesStart += classCount;
  }
  for (const [index, { priority, retryRatio, shedFraction }] of classes.entries()) {
    const at = classesAt + index * L.CLASS_SIZE;
    out.setInt32(at + L.CLASS_PRIORITY, priority, true);
    out.setFloat64(at + L.CLASS_RETRY_RATIO, retryRatio, true);
    out.setFloat64(at + L.CLASS_SHED_FRACTION, shedFraction, true);
  }
  for (const [index, { need, priority }] of rules.entries()) {
    const at = rulesAt + index * L.RULE_SIZE;
    out.setUint32(at + L.RULE_NEED, need, true);
    out.setInt32(at + L.RULE_PRIORITY, priority, true);
  }
  for (const [index, engine] of nearest.entries()) {
    out.setUint32(nearestAt + index * L.NEAREST_SIZE, engine, true);
  }
  for (const [index, engine] of poolEngines.entries()) {
    out.setUint32(poolEnginesAt + index * L.POOL_ENGINE_SIZE, engine, true);
  }
  for (const [index, segment] of segments.entries()) {
    const at = segmentsAt + index * L.SEGMENT_SIZE;
    out.setUint32(at + L.SEGMENT_START, segment.start, true);
    out.setUint32(at + L.SEGMENT_OWNER, segment.owner, true);
    out.setUint32(at + L.SEGMENT_BACKUP, segment.backup === -1 ? L.NO_ENGINE : segment.backup, true);
  }
  let replicasStart = 0;
  for (const [index, engine] of view.engines.entries()) {
    const at = enginesAt + index * L.ENGINE_SIZE;
    out.setBigUint64(at + L.ENGINE_HASH, id64(engine.id), true);
    text(at + L.ENGINE_ID, engine.id);
    out.setUint32(at + L.ENGINE_REPLICAS_START, replicasStart, true);
    out.setUint32(at + L.ENGINE_REPLICAS_COUNT, engine.replicas.length, true);
    out.setFloat64(at + L.ENGINE_OVERFLOW, engine.overflow ?? 0, true);
    out.setFloat64(at + L.ENGINE_REPLICA_LIMIT, engine.replicaLimit ?? Number.POSITIVE_INFINITY, true);
    text(at + L.ENGINE_PROBE, engine.probePath ?? '');
    out.setFloat64(at + L.ENGINE_BUSY, engine.busyAbove ?? Number.POSITIVE_INFINITY, true);
    replicasStart += engine.replicas.length;
  }
  for (const [index, replica] of replicas.entries()) {
    const at = replicasAt + index * L.REPLICA_SIZE;
    out.setBigUint64(at + L.REPLICA_SEED, id64(replica.address), true);
    text(at + L.REPLICA_ADDRESS, replica.address);
    out.setUint32(at + L.REPLICA_FLAGS, replica.ready ? L.REPLICA_READY : 0, true);
    out.setFloat64(at + L.REPLICA_OVERFLOW, replica.overflow ?? 0, true);
  }

  const bytes = new Uint8Array(out.buffer);
  out.setUint32(L.HEADER_LENGTH, bytes.length, true);
  out.setBigUint64(L.HEADER_CHECKSUM, hash64(bytes.subarray(L.HEADER_CHECKED), 0n), true);
  return bytes;
}

/** A condition in the form of its row. */
function conditionRow(when: NeedCondition): { kind: number; number: number; name: string; value: string } {
  const row = { number: 0, name: '', value: '' };
  switch (when.kind) {
    case 'header':
      return { ...row, kind: L.NEED_BY_HEADER, name: when.name, value: when.value ?? '' };
    case 'path':
      return { ...row, kind: L.NEED_BY_PATH, value: when.prefix };
    case 'tenant':
      return { ...row, kind: L.NEED_BY_TENANT, value: when.value };
    case 'body':
      return { ...row, kind: L.NEED_BY_BODY, number: bodyFeatures.indexOf(when.feature) };
    case 'promptTokens':
      return { ...row, kind: L.NEED_BY_PROMPT_TOKENS, number: when.above };
    case 'serviceTier':
      return { ...row, kind: L.NEED_BY_SERVICE_TIER, value: when.value };
    case 'priority':
      return { ...row, kind: L.NEED_BY_PRIORITY, number: when.above };
  }
}

/** The classes of a pool in the order of their rows. */
function classesOf({ retryRatio, shedFraction, otherClasses = [] }: SnapshotPool): SnapshotClass[] {
  return [{ priority: 0, retryRatio, shedFraction }, ...otherClasses];
}

/** Places sections one after the other and writes their offsets and counts into the header. */
class Sections {
  end = L.HEADER_SIZE;
  readonly #entries: { header: number; offset: number; count: number }[] = [];

  add(header: number, count: number, rowSize: number): number {
    const offset = this.end;
    this.#entries.push({ header, offset, count });
    this.end = (offset + count * rowSize + 7) & ~7;
    return offset;
  }

  write(out: DataView): void {
    for (const { header, offset, count } of this.#entries) {
      out.setUint32(header, offset, true);
      out.setUint32(header + 4, count, true);
    }
    out.setUint32(L.HEADER_STRINGS, this.end, true);
    out.setUint32(L.HEADER_STRINGS + 4, out.byteLength - this.end, true);
  }
}

/** The string table; equal strings are stored once. */
class Strings {
  readonly #utf8 = new TextEncoder();
  readonly #known = new Map<string, { offset: number; bytes: Uint8Array }>();
  #size = 0;

  /** Collects every string of the view and returns the size of the table. */
  measure(view: SnapshotView): number {
    this.#collect(view.frontendId);
    this.#collect(view.salt);
    for (const model of view.models) this.#collect(model.name);
    for (const need of view.needs ?? []) {
      const { name, value } = conditionRow(need.when);
      this.#collect(need.id);
      this.#collect(name);
      this.#collect(value);
    }
    for (const pool of view.pools) {
      this.#collect(pool.id);
      this.#collect(pool.cluster);
    }
    for (const engine of view.engines) {
      this.#collect(engine.id);
      this.#collect(engine.probePath ?? '');
      for (const replica of engine.replicas) this.#collect(replica.address);
    }
    return this.#size;
  }

  /** Writes the text reference at `at` and the text into the table that begins at `table`. */
  write(out: DataView, at: number, table: number, value: string): void {
    const { offset, bytes } = this.#known.get(value)!;
    new Uint8Array(out.buffer).set(bytes, table + offset);
    out.setUint32(at, table + offset, true);
    out.setUint32(at + 4, bytes.length, true);
  }

  #collect(value: string): void {
    if (this.#known.has(value)) return;
    const bytes = this.#utf8.encode(value);
    this.#known.set(value, { offset: this.#size, bytes });
    this.#size += bytes.length;
  }
}
