import { id64 } from './hash.js';
import * as L from './layout.js';
import {
  bodyFeatures,
  type NeedCondition,
  type SnapshotClass,
  type SnapshotPool,
  type SnapshotView,
} from './snapshot-view.js';

/** Above this many, all are forgotten: more than any fleet has at a time. */
const MOST_KNOWN = 200_000;
const knownIds = new Map<string, bigint>();

/** `id64`, which costs much and is of the same names in the snapshots of all frontends. */
function knownId64(text: string): bigint {
  let id = knownIds.get(text);
  if (id === undefined) {
    if (knownIds.size >= MOST_KNOWN) knownIds.clear();
    id = id64(text);
    knownIds.set(text, id);
  }
  return id;
}

/** Takes the fields of one row; `field` is their place in it. */
export interface Row {
  u32(field: number, value: number): void;
  i32(field: number, value: number): void;
  u64(field: number, value: bigint): void;
  f64(field: number, value: number): void;
  text(field: number, value: string): void;
}

/** Rows of one kind, as they stand in a snapshot. */
export interface Section {
  /** Where the header says where it is and how many rows it has. */
  readonly header: number;
  readonly rowSize: number;
  readonly rows: readonly ((row: Row) => void)[];
}

/** All sections, in the order in which they follow each other. */
export function sectionsOf(view: SnapshotView): readonly Section[] {
  const { pools, engines, needs = [], classRules = [], nearest = [] } = view;
  const models = view.models
    .map((model) => ({ ...model, hash: knownId64(model.name) }))
    .sort((a, b) => (a.hash < b.hash ? -1 : 1));
  const modelPools = models.flatMap((model) => model.pools ?? [model.pool]);
  return [
    section(L.HEADER_MODELS, L.MODEL_SIZE, modelRows(models)),
    section(L.HEADER_POOLS, L.POOL_SIZE, poolRows(pools)),
    numbers(
      L.HEADER_POOL_ENGINES,
      L.POOL_ENGINE_SIZE,
      pools.flatMap((pool) => pool.engines),
    ),
    section(L.HEADER_SEGMENTS, L.SEGMENT_SIZE, pools.flatMap(segmentRows)),
    section(L.HEADER_ENGINES, L.ENGINE_SIZE, engineRows(engines)),
    section(L.HEADER_REPLICAS, L.REPLICA_SIZE, engines.flatMap(replicaRows)),
    section(L.HEADER_NEEDS, L.NEED_SIZE, needRows(needs)),
    numbers(
      L.HEADER_MODEL_NEEDS,
      L.MODEL_NEED_SIZE,
      models.flatMap((model) => model.needs ?? []),
    ),
    numbers(
      L.HEADER_MODEL_POOLS,
      L.MODEL_POOL_SIZE,
      modelPools.map((pool) => (pool === -1 ? L.NO_POOL : pool)),
    ),
    section(L.HEADER_CLASSES, L.CLASS_SIZE, pools.flatMap(classRows)),
    section(L.HEADER_CLASS_RULES, L.RULE_SIZE, ruleRows(classRules)),
    numbers(L.HEADER_NEAREST, L.NEAREST_SIZE, nearest),
  ];
}

type Rows = Section['rows'];

function section(header: number, rowSize: number, rows: Rows): Section {
  return { header, rowSize, rows };
}

/** Rows of one number each. */
function numbers(header: number, rowSize: number, values: readonly number[]): Section {
  return section(
    header,
    rowSize,
    values.map((value) => (row) => row.u32(0, value)),
  );
}

function modelRows(models: readonly (SnapshotView['models'][number] & { readonly hash: bigint })[]): Rows {
  const needsStarts = starts(models, ({ needs = [] }) => needs.length);
  const poolsStarts = starts(models, ({ needs = [] }) => 2 ** needs.length);
  return models.map(({ hash, name, needs = [] }, index) => (row) => {
    row.u64(L.MODEL_HASH, hash);
    row.text(L.MODEL_NAME, name);
    row.u32(L.MODEL_NEEDS_START, needsStarts[index]!);
    row.u32(L.MODEL_NEEDS_COUNT, needs.length);
    row.u32(L.MODEL_POOLS_START, poolsStarts[index]!);
  });
}

function poolRows(pools: SnapshotView['pools']): Rows {
  const enginesStarts = starts(pools, ({ engines }) => engines.length);
  const segmentsStarts = starts(pools, ({ segments }) => segments.length);
  const classesStarts = starts(pools, (pool) => classesOf(pool).length);
  return pools.map((pool, index) => (row) => {
    row.u64(L.POOL_HASH, knownId64(pool.id));
    row.text(L.POOL_ID, pool.id);
    row.text(L.POOL_CLUSTER, pool.cluster);
    row.u32(L.POOL_ENGINES_START, enginesStarts[index]!);
    row.u32(L.POOL_ENGINES_COUNT, pool.engines.length);
    row.u32(L.POOL_SEGMENTS_START, segmentsStarts[index]!);
    row.u32(L.POOL_SEGMENTS_COUNT, pool.segments.length);
    row.u32(L.POOL_CLASSES_START, classesStarts[index]!);
    row.u32(L.POOL_CLASSES_COUNT, classesOf(pool).length);
  });
}

/** Where the part of each item begins, when the parts of all follow each other. */
function starts<T>(items: readonly T[], lengthOf: (item: T) => number): readonly number[] {
  let next = 0;
  return items.map((item) => {
    const start = next;
    next += lengthOf(item);
    return start;
  });
}

function segmentRows({ segments }: SnapshotPool): Rows {
  return segments.map(({ start, owner, backup }) => (row) => {
    row.u32(L.SEGMENT_START, start);
    row.u32(L.SEGMENT_OWNER, owner);
    row.u32(L.SEGMENT_BACKUP, backup === -1 ? L.NO_ENGINE : backup);
  });
}

function engineRows(engines: SnapshotView['engines']): Rows {
  const replicasStarts = starts(engines, ({ replicas }) => replicas.length);
  return engines.map((engine, index) => (row) => {
    row.u64(L.ENGINE_HASH, knownId64(engine.id));
    row.text(L.ENGINE_ID, engine.id);
    row.u32(L.ENGINE_REPLICAS_START, replicasStarts[index]!);
    row.u32(L.ENGINE_REPLICAS_COUNT, engine.replicas.length);
    row.f64(L.ENGINE_OVERFLOW, engine.overflow ?? 0);
    row.f64(L.ENGINE_REPLICA_LIMIT, engine.replicaLimit ?? Number.POSITIVE_INFINITY);
    row.text(L.ENGINE_PROBE, engine.probePath ?? '');
    row.f64(L.ENGINE_BUSY, engine.busyAbove ?? Number.POSITIVE_INFINITY);
  });
}

function replicaRows({ replicas }: SnapshotView['engines'][number]): Rows {
  return replicas.map(({ address, ready, overflow = 0 }) => (row) => {
    row.u64(L.REPLICA_SEED, knownId64(address));
    row.text(L.REPLICA_ADDRESS, address);
    row.u32(L.REPLICA_FLAGS, ready ? L.REPLICA_READY : 0);
    row.f64(L.REPLICA_OVERFLOW, overflow);
  });
}

function needRows(needs: NonNullable<SnapshotView['needs']>): Rows {
  return needs.map(({ id, when }) => (row) => {
    const { kind, number, name, value } = conditionRow(when);
    row.text(L.NEED_ID, id);
    row.u32(L.NEED_KIND, kind);
    row.u32(L.NEED_NUMBER, number);
    row.text(L.NEED_NAME, name);
    row.text(L.NEED_VALUE, value);
  });
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
    case 'totalTokens':
      return { ...row, kind: L.NEED_BY_TOTAL_TOKENS, number: when.above };
    case 'serviceTier':
      return { ...row, kind: L.NEED_BY_SERVICE_TIER, value: when.value };
    case 'priority':
      return { ...row, kind: L.NEED_BY_PRIORITY, number: when.above };
  }
}

function classRows(pool: SnapshotPool): Rows {
  return classesOf(pool).map(({ priority, retryRatio, shedFraction }) => (row) => {
    row.i32(L.CLASS_PRIORITY, priority);
    row.f64(L.CLASS_RETRY_RATIO, retryRatio);
    row.f64(L.CLASS_SHED_FRACTION, shedFraction);
  });
}

/** The classes of a pool in the order of their rows. */
function classesOf({ retryRatio, shedFraction, otherClasses = [] }: SnapshotPool): SnapshotClass[] {
  return [{ priority: 0, retryRatio, shedFraction }, ...otherClasses];
}

function ruleRows(rules: NonNullable<SnapshotView['classRules']>): Rows {
  return rules.map(({ need, priority }) => (row) => {
    row.u32(L.RULE_NEED, need);
    row.i32(L.RULE_PRIORITY, priority);
  });
}
