// Step 2: the pool that serves a model to a request with certain needs.

import * as L from '../../wire/layout';
import { equals } from '../abi/text';
import { hash64 } from '../hash';
import { install, modelCount, modelPools, models, textAt, textLength } from '../snapshot/current';
import { needOf } from './needs';

/** The model found last, and the install whose row it is: most requests name the same one again. */
let latest: usize = 0;
let latestInstall: u32 = 0;

/** Row of the model with exactly this name, 0 if there is none. */
// @ts-ignore: decorator
@inline
export function findModel(at: usize, length: usize): usize {
  return latestInstall == install && isNamed(latest, at, length) ? latest : searchModel(at, length);
}

function searchModel(at: usize, length: usize): usize {
  const hash = hash64(at, length, 0);
  let low: u32 = 0;
  let high = modelCount;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u64>(models + <usize>middle * L.MODEL_SIZE, L.MODEL_HASH) < hash) low = middle + 1;
    else high = middle;
  }
  if (low == modelCount) return 0;
  const row = models + <usize>low * L.MODEL_SIZE;
  if (!isNamed(row, at, length)) return 0;
  latest = row;
  latestInstall = install;
  return row;
}

// @ts-ignore: decorator
@inline
function isNamed(row: usize, at: usize, length: usize): bool {
  return equals(textAt(row + L.MODEL_NAME), textLength(row + L.MODEL_NAME), at, length);
}

/** Row of the only model there is, 0 if there are none or several. */
export function onlyModel(): usize {
  return modelCount == 1 ? models : 0;
}

/** Number of the pool for a model and the needs carried, -1 when nobody meets them. */
export function poolFor(model: usize, carried: u64): i32 {
  let combination: u32 = 0;
  for (let i: u32 = 0; i < load<u32>(model, L.MODEL_NEEDS_COUNT); i++) {
    if ((carried >> <u64>needOf(model, i)) & 1) combination |= 1 << i;
  }
  const at = modelPools + ((<usize>(load<u32>(model, L.MODEL_POOLS_START) + combination)) << 2);
  // NO_POOL is -1 as a signed number.
  return <i32>load<u32>(at);
}
