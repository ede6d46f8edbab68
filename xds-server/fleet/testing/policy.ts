import type { Policy } from '../policy.js';

/** What the configuration says when it says nothing. */
export const defaultPolicy: Policy = {
  targetUtilization: 0.9,
  maxUtilization: 1,
  retries: { max: 0.2, min: 0 },
  bounds: [],
  minShares: [],
  egressSecondsPerDollar: 0,
};
