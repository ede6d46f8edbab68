import { boundedLoadHash } from './bounded-load-hash.js';
import { cacheAware } from './cache-aware.js';
import { clairvoyant } from './clairvoyant.js';
import { consistentHash } from './consistent-hash.js';
import { endpointPicker } from './endpoint-picker.js';
import { leastRequest } from './least-request.js';
import { localBest } from './local-best.js';
import { nativeMaglev } from './native-maglev.js';
import { nearest } from './nearest.js';
import type { PolicyFactory } from './policy.js';
import { proportional } from './proportional.js';
import { randomByCapacity } from './random-by-capacity.js';
import { roundRobin } from './round-robin.js';
import { sessionCookie, sessionPinning } from './session-pinning.js';
import { wardrop } from './wardrop.js';
import { waterfall } from './waterfall.js';

/** Every policy that can be asked for, by name. */
export const policies: Readonly<Record<string, PolicyFactory>> = {
  'round-robin': roundRobin,
  random: randomByCapacity,
  nearest,
  'local-best': localBest,
  waterfall,
  'least-request': leastRequest,
  'consistent-hash': consistentHash,
  'session-pinning': sessionPinning,
  'session-cookie': sessionCookie,
  'bounded-load': boundedLoadHash,
  'cache-aware': cacheAware,
  'endpoint-picker': endpointPicker,
  proportional: proportional({ gain: 0.5, smoothing: 0.2 }),
  // The best of the sweep in the failure story.
  'proportional-tuned': proportional({ gain: 0.1, smoothing: 0.5 }, 'proportional-tuned'),
  'native-maglev': nativeMaglev,
  wardrop: wardrop(),
  clairvoyant,
};
