import { getTime } from './host';

const TIME: usize = memory.data(8, 8);
let latest: u64 = 0;
let behind: u64 = 0;

/** Nanoseconds since the epoch as the host tells them; to compare with other VMs. */
// @ts-ignore: decorator
@inline
function wallNs(): u64 {
  getTime(TIME);
  return load<u64>(TIME);
}

/** Milliseconds since the epoch as the host tells them. */
export function wallMs(): u64 {
  return wallNs() / 1_000_000;
}

/** Nanoseconds that never go back, whatever happens to the host's clock; for durations within this VM. */
// @ts-ignore: decorator
@inline
export function nowNs(): u64 {
  const wall = wallNs();
  if (wall < latest) behind += latest - wall;
  latest = wall;
  return wall + behind;
}

/** Milliseconds that never go back. */
export function nowMs(): u64 {
  return nowNs() / 1_000_000;
}
