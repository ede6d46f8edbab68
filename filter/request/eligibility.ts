// Step 2: the pool that serves a model.

import { equals } from '../abi/text';
import { hash64 } from '../hash';
import { modelCount, models, snapshot } from '../snapshot/current';
import * as L from '../../wire/layout';

/** Number of the pool for an exact model name, or -1. */
export function poolOfModel(at: usize, length: usize): i32 {
  const hash = hash64(at, length, 0);
  let low: u32 = 0;
  let high = modelCount;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (load<u64>(models + <usize>middle * L.MODEL_SIZE, L.MODEL_HASH) < hash) low = middle + 1;
    else high = middle;
  }
  if (low == modelCount) return -1;
  const row = models + <usize>low * L.MODEL_SIZE;
  const name = snapshot + <usize>load<u32>(row, L.MODEL_NAME);
  const nameLength = <usize>load<u32>(row, L.MODEL_NAME + 4);
  return equals(name, nameLength, at, length) ? <i32>load<u32>(row, L.MODEL_POOL) : -1;
}

/** Number of the pool of the only model there is, or -1. */
export function onlyPool(): i32 {
  return modelCount == 1 ? <i32>load<u32>(models, L.MODEL_POOL) : -1;
}
