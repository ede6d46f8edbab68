// The one complete check of a snapshot, before it is installed. Everything that readers rely on is checked here, so
// that they need no checks of their own: whatever the bytes, this function neither traps nor lets a snapshot pass
// that could make a reader trap.

import * as L from '../../wire/layout';
import { hash64 } from '../hash';

export enum Refusal {
  NONE,
  TOO_SHORT,
  NOT_A_SNAPSHOT,
  FORMAT,
  LENGTH,
  CHECKSUM,
  SECTION,
  TEXT,
  VERSION,
  FRONTEND,
  MODEL,
  POOL,
  SEGMENT,
  ENGINE,
  REPLICA,
  NEED,
  CLASS,
  NEAREST,
  STEERED,
}

let base: usize = 0;
let length: usize = 0;

/**
 * Checks the bytes. The snapshot must be for the frontend with this id, and may ask for a look into bodies only if
 * `readBodies` says that this is possible.
 */
export function validate(
  at: usize,
  size: usize,
  frontendAt: usize,
  frontendLength: usize,
  readBodies: bool,
): Refusal {
  base = at;
  length = size;
  if (size < <usize>L.HEADER_SIZE) return Refusal.TOO_SHORT;
  if (load<u32>(at, L.HEADER_MAGIC) != L.SNAPSHOT_MAGIC) return Refusal.NOT_A_SNAPSHOT;
  if (load<u32>(at, L.HEADER_FORMAT) != L.SNAPSHOT_FORMAT) return Refusal.FORMAT;
  if (<usize>load<u32>(at, L.HEADER_LENGTH) != size) return Refusal.LENGTH;
  if (load<u64>(at, L.HEADER_CHECKSUM) != hash64(at + L.HEADER_CHECKED, size - L.HEADER_CHECKED, 0)) {
    return Refusal.CHECKSUM;
  }
  if (
    !sectionFits(L.HEADER_MODELS, L.MODEL_SIZE) ||
    !sectionFits(L.HEADER_POOLS, L.POOL_SIZE) ||
    !sectionFits(L.HEADER_POOL_ENGINES, L.POOL_ENGINE_SIZE) ||
    !sectionFits(L.HEADER_SEGMENTS, L.SEGMENT_SIZE) ||
    !sectionFits(L.HEADER_ENGINES, L.ENGINE_SIZE) ||
    !sectionFits(L.HEADER_REPLICAS, L.REPLICA_SIZE) ||
    !sectionFits(L.HEADER_NEEDS, L.NEED_SIZE) ||
    !sectionFits(L.HEADER_MODEL_NEEDS, L.MODEL_NEED_SIZE) ||
    !sectionFits(L.HEADER_MODEL_POOLS, L.MODEL_POOL_SIZE) ||
    !sectionFits(L.HEADER_CLASSES, L.CLASS_SIZE) ||
    !sectionFits(L.HEADER_CLASS_RULES, L.RULE_SIZE) ||
    !sectionFits(L.HEADER_NEAREST, L.NEAREST_SIZE) ||
    !sectionFits(L.HEADER_STRINGS, 1)
  ) {
    return Refusal.SECTION;
  }
  const version = load<u64>(at, L.HEADER_VERSION);
  if (version == 0 || version >= 1 << 53) return Refusal.VERSION;
  if (!textFits(at + L.HEADER_FRONTEND, 1) || !textFits(at + L.HEADER_SALT, 0)) return Refusal.TEXT;
  if (
    <usize>load<u32>(at, L.HEADER_FRONTEND + 4) != frontendLength ||
    memory.compare(at + <usize>load<u32>(at, L.HEADER_FRONTEND), frontendAt, frontendLength) != 0
  ) {
    return Refusal.FRONTEND;
  }
  if (!isShare(load<f64>(at, L.HEADER_STEERED))) return Refusal.STEERED;
  let refusal = checkNeeds(readBodies);
  if (refusal == Refusal.NONE) refusal = checkRules();
  if (refusal == Refusal.NONE) refusal = checkModels();
  if (refusal == Refusal.NONE) refusal = checkPools();
  if (refusal == Refusal.NONE) refusal = checkEngines();
  if (refusal == Refusal.NONE) refusal = checkNearest();
  return refusal;
}

function sectionFits(header: usize, rowSize: u64): bool {
  const offset = load<u32>(base + header);
  const count = load<u32>(base + header, 4);
  return (
    offset >= <u32>L.HEADER_SIZE &&
    (offset & 7) == 0 &&
    (rowSize == 1 || count <= <u32>L.MAX_ROWS) &&
    <u64>offset + <u64>count * rowSize <= <u64>length
  );
}

/** Whether the text reference lies in the string table and has from `least` to MAX_NAME_BYTES bytes. */
function textFits(reference: usize, least: u32): bool {
  const offset = <u64>load<u32>(reference);
  const size = load<u32>(reference, 4);
  const start = <u64>load<u32>(base, L.HEADER_STRINGS);
  const end = start + <u64>load<u32>(base, L.HEADER_STRINGS + 4);
  return offset >= start && offset + <u64>size <= end && size >= least && size <= <u32>L.MAX_NAME_BYTES;
}

/** Whether the text is a path to ask for, or none. */
function isProbe(reference: usize): bool {
  return load<u32>(reference, 4) == 0 ? textFits(reference, 0) : isVisible(reference, 0);
}

/** Whether the text can be a header's value: visible ASCII, without the byte `except`. */
function isVisible(reference: usize, except: u8): bool {
  if (!textFits(reference, 1)) return false;
  const at = base + <usize>load<u32>(reference);
  const length = <usize>load<u32>(reference, 4);
  if (length < 8) {
    for (let i: usize = 0; i < length; i++) {
      const value = load<u8>(at + i);
      if (value < 0x21 || value > 0x7e || value == except) return false;
    }
    return true;
  }
  const last = length - 8;
  for (let i: usize = 0; i < last; i += 8) if (!areVisible(at + i, except)) return false;
  // May overlap the eight before.
  return areVisible(at + last, except);
}

/** The same for eight bytes; those above 0x7f are negative. */
// @ts-ignore: decorator
@inline
function areVisible(at: usize, except: u8): bool {
  const bytes = v128.load64_splat(at);
  const above = i8x16.gt_s(bytes, i8x16.splat(0x20));
  const below = i8x16.lt_s(bytes, i8x16.splat(0x7f));
  const other = i8x16.ne(bytes, i8x16.splat(<i8>except));
  return i8x16.all_true(v128.and(v128.and(above, below), other));
}

/** Whether the u64 at `hashAt` is the hash of the text. */
function isNamed(hashAt: usize, reference: usize): bool {
  const at = base + <usize>load<u32>(reference);
  return load<u64>(hashAt) == hash64(at, <usize>load<u32>(reference, 4), 0);
}

function checkNeeds(readBodies: bool): Refusal {
  const count = load<u32>(base, L.HEADER_NEEDS + 4);
  if (count > <u32>L.MAX_NEEDS) return Refusal.NEED;
  let row = base + <usize>load<u32>(base, L.HEADER_NEEDS);
  for (let i: u32 = 0; i < count; i++) {
    const kind = load<u32>(row, L.NEED_KIND);
    if (
      !isVisible(row + L.NEED_ID, 0) ||
      !textFits(row + L.NEED_NAME, kind == L.NEED_BY_HEADER ? 5 : 0) ||
      !textFits(row + L.NEED_VALUE, needsValue(kind) ? 1 : 0) ||
      kind > <u32>L.NEED_BY_PRIORITY ||
      (kind == L.NEED_BY_BODY && load<u32>(row, L.NEED_NUMBER) >= <u32>L.FEATURES) ||
      (tellsOnlyBody(kind) && !readBodies)
    ) {
      return Refusal.NEED;
    }
    row += L.NEED_SIZE;
  }
  return Refusal.NONE;
}

function needsValue(kind: u32): bool {
  return kind == L.NEED_BY_PATH || kind == L.NEED_BY_TENANT || kind == L.NEED_BY_SERVICE_TIER;
}

/** Whether a need of this kind cannot be judged without the body. */
export function tellsOnlyBody(kind: u32): bool {
  return kind == L.NEED_BY_BODY || tellsTokens(kind);
}

/** Whether a need of this kind is one of a context of some length. */
export function tellsTokens(kind: u32): bool {
  return kind == L.NEED_BY_PROMPT_TOKENS || kind == L.NEED_BY_TOTAL_TOKENS;
}

function checkRules(): Refusal {
  const count = load<u32>(base, L.HEADER_CLASS_RULES + 4);
  if (count > <u32>L.MAX_NEEDS) return Refusal.CLASS;
  let row = base + <usize>load<u32>(base, L.HEADER_CLASS_RULES);
  for (let i: u32 = 0; i < count; i++) {
    if (load<u32>(row, L.RULE_NEED) >= load<u32>(base, L.HEADER_NEEDS + 4)) return Refusal.CLASS;
    if (!isPriority(load<i32>(row, L.RULE_PRIORITY))) return Refusal.CLASS;
    row += L.RULE_SIZE;
  }
  return Refusal.NONE;
}

function isPriority(value: i32): bool {
  return value >= -L.MAX_PRIORITY && value <= L.MAX_PRIORITY;
}

/** Whether the `count` classes begin with priority 0 and go on with others that descend. */
function checkClasses(first: usize, count: u32): bool {
  if (count == 0 || count > <u32>L.MAX_CLASSES) return false;
  let row = first;
  for (let i: u32 = 0; i < count; i++) {
    const priority = load<i32>(row, L.CLASS_PRIORITY);
    if ((i == 0) != (priority == 0) || !isPriority(priority)) return false;
    if (i > 1 && priority >= load<i32>(row - L.CLASS_SIZE, L.CLASS_PRIORITY)) return false;
    if (!isShare(load<f64>(row, L.CLASS_RETRY_RATIO)) || !isShare(load<f64>(row, L.CLASS_SHED_FRACTION)))
      return false;
    row += L.CLASS_SIZE;
  }
  return true;
}

function checkNearest(): Refusal {
  const list = base + <usize>load<u32>(base, L.HEADER_NEAREST);
  for (let i: u32 = 0; i < load<u32>(base, L.HEADER_NEAREST + 4); i++) {
    if (load<u32>(list + ((<usize>i) << 2)) >= load<u32>(base, L.HEADER_ENGINES + 4)) return Refusal.NEAREST;
  }
  return Refusal.NONE;
}

function checkModels(): Refusal {
  const needs = load<u32>(base, L.HEADER_NEEDS + 4);
  const needRows = load<u32>(base, L.HEADER_MODEL_NEEDS + 4);
  const pools = load<u32>(base, L.HEADER_POOLS + 4);
  const poolRows = load<u32>(base, L.HEADER_MODEL_POOLS + 4);
  const count = load<u32>(base, L.HEADER_MODELS + 4);
  const needList = base + <usize>load<u32>(base, L.HEADER_MODEL_NEEDS);
  const poolList = base + <usize>load<u32>(base, L.HEADER_MODEL_POOLS);
  let row = base + <usize>load<u32>(base, L.HEADER_MODELS);
  let nextNeed: u32 = 0;
  let nextPool: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const needCount = load<u32>(row, L.MODEL_NEEDS_COUNT);
    if (
      !textFits(row + L.MODEL_NAME, 1) ||
      !isNamed(row + L.MODEL_HASH, row + L.MODEL_NAME) ||
      (i > 0 && load<u64>(row, L.MODEL_HASH) <= load<u64>(row - L.MODEL_SIZE, L.MODEL_HASH)) ||
      needCount > <u32>L.MAX_MODEL_NEEDS ||
      load<u32>(row, L.MODEL_NEEDS_START) != nextNeed ||
      needCount > needRows - nextNeed ||
      load<u32>(row, L.MODEL_POOLS_START) != nextPool ||
      (<u32>1) << needCount > poolRows - nextPool ||
      !checkAscending(needList + ((<usize>nextNeed) << 2), needCount, needs)
    ) {
      return Refusal.MODEL;
    }
    nextNeed += needCount;
    nextPool += (<u32>1) << needCount;
    row += L.MODEL_SIZE;
  }
  for (let i: u32 = 0; i < nextPool; i++) {
    const pool = load<u32>(poolList + ((<usize>i) << 2));
    if (pool >= pools && pool != <u32>L.NO_POOL) return Refusal.MODEL;
  }
  return nextNeed == needRows && nextPool == poolRows ? Refusal.NONE : Refusal.MODEL;
}

function checkPools(): Refusal {
  const engineRows = load<u32>(base, L.HEADER_POOL_ENGINES + 4);
  const segmentRows = load<u32>(base, L.HEADER_SEGMENTS + 4);
  const count = load<u32>(base, L.HEADER_POOLS + 4);
  let row = base + <usize>load<u32>(base, L.HEADER_POOLS);
  let engines: u32 = 0;
  let segments: u32 = 0;
  let classes: u32 = 0;
  const classRows = load<u32>(base, L.HEADER_CLASSES + 4);
  for (let i: u32 = 0; i < count; i++) {
    const engineCount = load<u32>(row, L.POOL_ENGINES_COUNT);
    const segmentCount = load<u32>(row, L.POOL_SEGMENTS_COUNT);
    if (
      !textFits(row + L.POOL_ID, 1) ||
      !isNamed(row + L.POOL_HASH, row + L.POOL_ID) ||
      !isVisible(row + L.POOL_CLUSTER, 0) ||
      load<u32>(row, L.POOL_ENGINES_START) != engines ||
      engineCount > engineRows - engines ||
      load<u32>(row, L.POOL_SEGMENTS_START) != segments ||
      segmentCount > segmentRows - segments ||
      load<u32>(row, L.POOL_CLASSES_START) != classes ||
      load<u32>(row, L.POOL_CLASSES_COUNT) > classRows - classes
    ) {
      return Refusal.POOL;
    }
    const list = base + <usize>load<u32>(base, L.HEADER_POOL_ENGINES) + <usize>engines * L.POOL_ENGINE_SIZE;
    if (!checkAscending(list, engineCount, load<u32>(base, L.HEADER_ENGINES + 4))) return Refusal.POOL;
    const first = base + <usize>load<u32>(base, L.HEADER_SEGMENTS) + <usize>segments * L.SEGMENT_SIZE;
    if (!checkSegments(first, segmentCount, list, engineCount)) return Refusal.SEGMENT;
    const classCount = load<u32>(row, L.POOL_CLASSES_COUNT);
    const firstClass = base + <usize>load<u32>(base, L.HEADER_CLASSES) + <usize>classes * L.CLASS_SIZE;
    if (!checkClasses(firstClass, classCount)) return Refusal.CLASS;
    engines += engineCount;
    segments += segmentCount;
    classes += classCount;
    row += L.POOL_SIZE;
  }
  return engines == engineRows && segments == segmentRows && classes == classRows
    ? Refusal.NONE
    : Refusal.POOL;
}

function isShare(value: f64): bool {
  return value >= 0 && value <= 1;
}

/** Whether the list of u32 ascends and stays below `limit`. */
function checkAscending(list: usize, count: u32, limit: u32): bool {
  for (let i: u32 = 0; i < count; i++) {
    const entry = load<u32>(list + ((<usize>i) << 2));
    if (entry >= limit || (i > 0 && entry <= load<u32>(list + ((<usize>i - 1) << 2)))) return false;
  }
  return true;
}

function checkSegments(first: usize, count: u32, list: usize, engineCount: u32): bool {
  let row = first;
  for (let i: u32 = 0; i < count; i++) {
    const start = load<u32>(row, L.SEGMENT_START);
    const owner = load<u32>(row, L.SEGMENT_OWNER);
    const backup = load<u32>(row, L.SEGMENT_BACKUP);
    if (i == 0 ? start != 0 : start <= load<u32>(row - L.SEGMENT_SIZE, L.SEGMENT_START)) return false;
    if (indexIn(list, engineCount, owner) < 0) return false;
    if (backup != <u32>L.NO_ENGINE && (backup == owner || indexIn(list, engineCount, backup) < 0))
      return false;
    row += L.SEGMENT_SIZE;
  }
  return true;
}

/** Place of a number in an ascending list of u32, or -1. */
export function indexIn(list: usize, count: u32, wanted: u32): i32 {
  let low: u32 = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u32>(list + ((<usize>middle) << 2)) < wanted) low = middle + 1;
    else high = middle;
  }
  return low < count && load<u32>(list + ((<usize>low) << 2)) == wanted ? <i32>low : -1;
}

function checkEngines(): Refusal {
  const replicaRows = load<u32>(base, L.HEADER_REPLICAS + 4);
  const count = load<u32>(base, L.HEADER_ENGINES + 4);
  let row = base + <usize>load<u32>(base, L.HEADER_ENGINES);
  let replicas: u32 = 0;
  for (let i: u32 = 0; i < count; i++) {
    const replicaCount = load<u32>(row, L.ENGINE_REPLICAS_COUNT);
    if (
      !isVisible(row + L.ENGINE_ID, 0) ||
      load<u32>(row, L.ENGINE_ID + 4) > <u32>L.MAX_ENGINE_ID_BYTES ||
      !isNamed(row + L.ENGINE_HASH, row + L.ENGINE_ID) ||
      load<u32>(row, L.ENGINE_REPLICAS_START) != replicas ||
      replicaCount > replicaRows - replicas ||
      !isShare(load<f64>(row, L.ENGINE_OVERFLOW)) ||
      !(load<f64>(row, L.ENGINE_REPLICA_LIMIT) >= 0) ||
      !(load<f64>(row, L.ENGINE_BUSY) >= 0) ||
      !isProbe(row + L.ENGINE_PROBE)
    ) {
      return Refusal.ENGINE;
    }
    replicas += replicaCount;
    row += L.ENGINE_SIZE;
  }
  if (replicas != replicaRows) return Refusal.ENGINE;
  let replica = base + <usize>load<u32>(base, L.HEADER_REPLICAS);
  for (let i: u32 = 0; i < replicaRows; i++) {
    if (
      !isVisible(replica + L.REPLICA_ADDRESS, 0x2c) ||
      !isNamed(replica + L.REPLICA_SEED, replica + L.REPLICA_ADDRESS) ||
      !isShare(load<f64>(replica, L.REPLICA_OVERFLOW))
    ) {
      return Refusal.REPLICA;
    }
    replica += L.REPLICA_SIZE;
  }
  return Refusal.NONE;
}
