import { WardropError } from '../xds-server/errors.js';
import {
  MAX_CLASSES,
  MAX_ENGINE_ID_BYTES,
  MAX_MODEL_NEEDS,
  MAX_NAME_BYTES,
  MAX_NEEDS,
  MAX_PRIORITY,
  MAX_ROWS,
} from './layout.js';
import type {
  SnapshotEngine,
  SnapshotModel,
  SnapshotNeed,
  SnapshotPool,
  SnapshotView,
} from './snapshot-view.js';

const visible = /^[\x21-\x7e]+$/;
/** Of at least 5 characters, so that the filter can tell it by its first and last four. */
const headerName = /^[a-z0-9_-]{5,}$/;
const address = /^[\x21-\x2b\x2d-\x7e]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const control = /[\x00-\x1f\x7f]/;
const unpaired = /\p{Surrogate}/u;

/**
 * What a snapshot must fulfil beyond its types; the filter refuses any that does not. Throws
 * WARDROP_SNAPSHOT_INVALID with the path of the first violation.
 */
export function checkSnapshot(view: SnapshotView): void {
  check(isWhole(view.version, 1, Number.MAX_SAFE_INTEGER), 'version', 'must be a whole number of 1 or more');
  check(/^[0-9a-f]{16}$/.test(view.planId), 'planId', 'must be 16 hex digits');
  check(isWhole(view.issuedAtMs, 0, Number.MAX_SAFE_INTEGER), 'issuedAtMs', 'must be a whole number');
  checkName(view.frontendId, 'frontendId', visible);
  check(Buffer.byteLength(view.salt) <= MAX_NAME_BYTES, 'salt', `must have at most ${MAX_NAME_BYTES} bytes`);
  check(isShare(view.steered ?? 1), 'steered', 'must be between 0 and 1');

  checkUnique(view.models, (model) => model.name, 'models', 'name');
  for (const [index, model] of view.models.entries()) {
    checkModel(model, `models[${index}]`, view);
  }
  checkUnique(view.needs ?? [], (need) => need.id, 'needs', 'id');
  check((view.needs?.length ?? 0) <= MAX_NEEDS, 'needs', `must have at most ${MAX_NEEDS} entries`);
  for (const [index, need] of (view.needs ?? []).entries()) checkNeed(need, `needs[${index}]`);
  for (const [index, { need, priority }] of (view.classRules ?? []).entries()) {
    const path = `classRules[${index}]`;
    check(isWhole(need, 0, (view.needs?.length ?? 0) - 1), `${path}.need`, 'must be a need');
    check(isPriority(priority), `${path}.priority`, PRIORITY_RULE);
  }
  check((view.classRules?.length ?? 0) <= MAX_NEEDS, 'classRules', `must have at most ${MAX_NEEDS} entries`);
  for (const [index, engine] of (view.nearest ?? []).entries()) {
    check(isWhole(engine, 0, view.engines.length - 1), `nearest[${index}]`, 'must be an engine');
  }
  check((view.nearest?.length ?? 0) <= MAX_ROWS, 'nearest', `must have at most ${MAX_ROWS} entries`);
  checkUnique(view.pools, (pool) => pool.id, 'pools', 'id');
  for (const [index, pool] of view.pools.entries()) checkPool(pool, `pools[${index}]`, view.engines.length);
  checkUnique(view.engines, (engine) => engine.id, 'engines', 'id');
  for (const [index, engine] of view.engines.entries()) checkEngine(engine, `engines[${index}]`);
}

function checkModel(model: SnapshotModel, path: string, view: SnapshotView): void {
  checkName(model.name, `${path}.name`);
  const { needs = [], pools = [model.pool] } = model;
  checkAscending(needs, view.needs?.length ?? 0, `${path}.needs`, 'a need');
  check(needs.length <= MAX_MODEL_NEEDS, `${path}.needs`, `must have at most ${MAX_MODEL_NEEDS} entries`);
  check(
    pools.length === 2 ** needs.length,
    `${path}.pools`,
    'must have an entry for every combination of needs',
  );
  check(pools[0] === model.pool, `${path}.pool`, 'must be the pool without needs');
  for (const [index, pool] of pools.entries()) {
    check(isWhole(pool, -1, view.pools.length - 1), `${path}.pools[${index}]`, 'must be -1 or a pool');
  }
}

function checkNeed({ id, when }: SnapshotNeed, path: string): void {
  checkName(id, `${path}.id`, visible);
  if (when.kind === 'header') {
    checkName(when.name, `${path}.when.name`, headerName);
    if (when.value !== undefined) checkName(when.value, `${path}.when.value`);
  } else if (when.kind === 'path') {
    checkName(when.prefix, `${path}.when.prefix`, visible);
  } else if (when.kind === 'tenant' || when.kind === 'serviceTier') {
    checkName(when.value, `${path}.when.value`);
  } else if (when.kind === 'promptTokens' || when.kind === 'totalTokens' || when.kind === 'priority') {
    check(isWhole(when.above, 0, 2 ** 32 - 1), `${path}.when.above`, 'must be a whole number below 2^32');
  }
}

function checkPool(pool: SnapshotPool, path: string, engineCount: number): void {
  checkName(pool.id, `${path}.id`);
  checkName(pool.cluster, `${path}.cluster`, visible);
  check(isShare(pool.retryRatio), `${path}.retryRatio`, 'must be between 0 and 1');
  check(isShare(pool.shedFraction), `${path}.shedFraction`, 'must be between 0 and 1');
  const others = pool.otherClasses ?? [];
  check(others.length < MAX_CLASSES, `${path}.otherClasses`, `must have fewer than ${MAX_CLASSES} entries`);
  for (const [index, { priority, retryRatio, shedFraction }] of others.entries()) {
    const at = `${path}.otherClasses[${index}]`;
    check(isPriority(priority) && priority !== 0, `${at}.priority`, `${PRIORITY_RULE}, and not 0`);
    check(index === 0 || priority < others[index - 1]!.priority, `${at}.priority`, 'must descend');
    check(isShare(retryRatio), `${at}.retryRatio`, 'must be between 0 and 1');
    check(isShare(shedFraction), `${at}.shedFraction`, 'must be between 0 and 1');
  }
  check(pool.engines.length <= MAX_ROWS, `${path}.engines`, `must have at most ${MAX_ROWS} entries`);
  checkAscending(pool.engines, engineCount, `${path}.engines`, 'an engine');
  const eligible = new Set(pool.engines);
  let start = -1;
  for (const [index, segment] of pool.segments.entries()) {
    const at = `${path}.segments[${index}]`;
    check(isWhole(segment.start, start + 1, 2 ** 32 - 1), `${at}.start`, 'must ascend below 2^32');
    check(index > 0 || segment.start === 0, `${at}.start`, 'must be 0 in the first segment');
    start = segment.start;
    check(eligible.has(segment.owner), `${at}.owner`, 'must be one of the pool’s engines');
    check(
      segment.backup === -1 || (segment.backup !== segment.owner && eligible.has(segment.backup)),
      `${at}.backup`,
      'must be -1 or another one of the pool’s engines',
    );
  }
}

function checkEngine(engine: SnapshotEngine, path: string): void {
  checkName(engine.id, `${path}.id`, visible);
  check(
    engine.id.length <= MAX_ENGINE_ID_BYTES,
    `${path}.id`,
    `must have at most ${MAX_ENGINE_ID_BYTES} bytes`,
  );
  check(isShare(engine.overflow ?? 0), `${path}.overflow`, 'must be between 0 and 1');
  check((engine.replicaLimit ?? 0) >= 0, `${path}.replicaLimit`, 'must be 0 or more');
  check((engine.busyAbove ?? 0) >= 0, `${path}.busyAbove`, 'must be 0 or more');
  if (engine.probePath !== undefined) checkName(engine.probePath, `${path}.probePath`, visible);
  if (!rightReplicas.has(engine.replicas)) checkReplicas(engine.replicas, `${path}.replicas`);
}

/** Lists that have been found right: the snapshots of all frontends share them, and they are most of what there is to check. */
const rightReplicas = new WeakSet<SnapshotEngine['replicas']>();

function checkReplicas(replicas: SnapshotEngine['replicas'], path: string): void {
  checkUnique(replicas, (replica) => replica.address, path, 'address');
  for (const [index, replica] of replicas.entries()) {
    checkName(replica.address, `${path}[${index}].address`, address);
    check(isShare(replica.overflow ?? 0), `${path}[${index}].overflow`, 'must be between 0 and 1');
  }
  rightReplicas.add(replicas);
}

function checkName(name: string, path: string, pattern?: RegExp): void {
  const bytes = Buffer.byteLength(name);
  check(bytes > 0 && bytes <= MAX_NAME_BYTES, path, `must have 1 to ${MAX_NAME_BYTES} bytes`);
  if (pattern === undefined) {
    check(
      !control.test(name) && !unpaired.test(name),
      path,
      'must not hold control characters or half characters',
    );
  } else check(pattern.test(name), path, `must match ${pattern}`);
}

function checkAscending(list: readonly number[], count: number, path: string, what: string): void {
  let previous = -1;
  for (const [index, entry] of list.entries()) {
    check(isWhole(entry, previous + 1, count - 1), `${path}[${index}]`, `must ascend and name ${what}`);
    previous = entry;
  }
}

function checkUnique<T>(items: readonly T[], name: (item: T) => string, path: string, field: string): void {
  check(items.length <= MAX_ROWS, path, `must have at most ${MAX_ROWS} entries`);
  const seen = new Set<string>();
  for (const [index, item] of items.entries()) {
    check(!seen.has(name(item)), `${path}[${index}].${field}`, 'is there twice');
    seen.add(name(item));
  }
}

function isWhole(value: number, min: number, max: number): boolean {
  return Number.isInteger(value) && value >= min && value <= max;
}

const PRIORITY_RULE = `must be a whole number from -${MAX_PRIORITY} to ${MAX_PRIORITY}`;

function isPriority(value: number): boolean {
  return isWhole(value, -MAX_PRIORITY, MAX_PRIORITY);
}

function isShare(value: number): boolean {
  return value >= 0 && value <= 1;
}

function check(holds: boolean, path: string, rule: string): void {
  if (!holds) throw new WardropError('WARDROP_SNAPSHOT_INVALID', `snapshot ${path}: ${rule}`);
}
