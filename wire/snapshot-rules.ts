import { WardropError } from '../xds-server/errors.js';
import { MAX_ENGINE_ID_BYTES, MAX_NAME_BYTES, MAX_ROWS } from './layout.js';
import type { SnapshotEngine, SnapshotPool, SnapshotView } from './snapshot-view.js';

const visible = /^[\x21-\x7e]+$/;
const address = /^[\x21-\x2b\x2d-\x7e]+$/;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const control = /[\x00-\x1f\x7f]/;
const unpaired = /\p{Surrogate}/u;
const utf8 = new TextEncoder();

/**
 * What a snapshot must fulfil beyond its types; the filter refuses any that does not. Throws
 * WARDROP_SNAPSHOT_INVALID with the path of the first violation.
 */
export function checkSnapshot(view: SnapshotView): void {
  check(isWhole(view.version, 1, Number.MAX_SAFE_INTEGER), 'version', 'must be a whole number of 1 or more');
  check(/^[0-9a-f]{16}$/.test(view.planId), 'planId', 'must be 16 hex digits');
  check(isWhole(view.issuedAtMs, 0, Number.MAX_SAFE_INTEGER), 'issuedAtMs', 'must be a whole number');
  checkName(view.frontendId, 'frontendId', visible);
  check(utf8.encode(view.salt).length <= MAX_NAME_BYTES, 'salt', `must have at most ${MAX_NAME_BYTES} bytes`);

  checkUnique(view.models, (model) => model.name, 'models', 'name');
  for (const [index, model] of view.models.entries()) {
    checkName(model.name, `models[${index}].name`);
    check(isWhole(model.pool, 0, view.pools.length - 1), `models[${index}].pool`, 'names no pool');
  }
  checkUnique(view.pools, (pool) => pool.id, 'pools', 'id');
  for (const [index, pool] of view.pools.entries()) checkPool(pool, `pools[${index}]`, view.engines.length);
  checkUnique(view.engines, (engine) => engine.id, 'engines', 'id');
  for (const [index, engine] of view.engines.entries()) checkEngine(engine, `engines[${index}]`);
}

function checkPool(pool: SnapshotPool, path: string, engineCount: number): void {
  checkName(pool.id, `${path}.id`);
  checkName(pool.cluster, `${path}.cluster`, visible);
  check(isShare(pool.retryRatio), `${path}.retryRatio`, 'must be between 0 and 1');
  check(isShare(pool.shedFraction), `${path}.shedFraction`, 'must be between 0 and 1');
  check(pool.engines.length <= MAX_ROWS, `${path}.engines`, `must have at most ${MAX_ROWS} entries`);
  let previous = -1;
  for (const [index, engine] of pool.engines.entries()) {
    check(
      isWhole(engine, previous + 1, engineCount - 1),
      `${path}.engines[${index}]`,
      'must ascend and name an engine',
    );
    previous = engine;
  }
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
  checkUnique(engine.replicas, (replica) => replica.address, `${path}.replicas`, 'address');
  for (const [index, replica] of engine.replicas.entries()) {
    checkName(replica.address, `${path}.replicas[${index}].address`, address);
  }
}

function checkName(name: string, path: string, pattern?: RegExp): void {
  const bytes = utf8.encode(name).length;
  check(bytes > 0 && bytes <= MAX_NAME_BYTES, path, `must have 1 to ${MAX_NAME_BYTES} bytes`);
  if (pattern === undefined) {
    check(
      !control.test(name) && !unpaired.test(name),
      path,
      'must not hold control characters or half characters',
    );
  } else check(pattern.test(name), path, `must match ${pattern}`);
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

function isShare(value: number): boolean {
  return value >= 0 && value <= 1;
}

function check(holds: boolean, path: string, rule: string): void {
  if (!holds) throw new WardropError('WARDROP_SNAPSHOT_INVALID', `snapshot ${path}: ${rule}`);
}
