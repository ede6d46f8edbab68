// Step 3: the segment of the partition that a key falls in.

import { BOUND_SIZE, BOUND_START } from '../snapshot/current';

/** The last of `count` bound segments (at least one) that starts at or before the point; the first starts at 0. */
// @ts-ignore: decorator
@inline
export function segmentOf(first: usize, count: u32, point: u32): usize {
  let low: u32 = 0;
  let high = count;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (load<u32>(first + <usize>middle * BOUND_SIZE, BOUND_START) <= point) low = middle;
    else high = middle;
  }
  return first + <usize>low * BOUND_SIZE;
}
