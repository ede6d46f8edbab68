// Step 3: the segment of the partition that a key falls in.

import { BOUND_SIZE, BOUND_START } from '../snapshot/current';

/** The last of `count` bound segments (at least one) that starts at or before the point; the first starts at 0. */
// @ts-ignore: decorator
@inline
export function segmentOf(first: usize, count: u32, point: u32): usize {
  let low = first;
  // Without a branch: where a key falls is what no processor can foretell.
  while (count > 1) {
    const half = count >> 1;
    const middle = low + <usize>half * BOUND_SIZE;
    low = select(middle, low, load<u32>(middle, BOUND_START) <= point);
    count -= half;
  }
  return low;
}
