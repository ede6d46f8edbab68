// One VM of an Envoy talks to the control server: the one that holds the lease in shared data. It renews the lease
// every tick; when it stops, another VM takes over.

import { resultAt } from '../abi/memory';
import { Key } from '../abi/shared';

const VALUE: usize = memory.data(16, 8);
const OWNER: usize = 0;
const UNTIL: usize = 8;

/** Whether this VM holds the lease, which it takes or renews if it can. `now` is the host's clock. */
export function holdsLease(key: Key, me: u64, now: u64, leaseMs: u64): bool {
  if (key.read(16)) {
    const owner = load<u64>(resultAt(), OWNER);
    const until = load<u64>(resultAt(), UNTIL);
    // A lease longer than any that is given was left before the clock was set back.
    const running = until > now && until - now <= leaseMs;
    if (running && owner != me) return false;
    if (running && until - now > leaseMs / 2) return true;
  }
  store<u64>(VALUE, me, OWNER);
  store<u64>(VALUE, now + leaseMs, UNTIL);
  return key.writeIfUnchanged(VALUE, 16);
}

/** Leaves the lease, if this VM holds it, to whoever asks next. */
export function leaveLease(key: Key, me: u64): void {
  if (!key.read(16) || load<u64>(resultAt(), OWNER) != me) return;
  store<u64>(VALUE, me, OWNER);
  store<u64>(VALUE, 0, UNTIL);
  key.writeIfUnchanged(VALUE, 16);
}
