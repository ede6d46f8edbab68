import type { Policy } from '../../fleet/policy.js';
import type { ConfigFile } from '../schema/schema.js';

export function buildPolicy(config: ConfigFile): Policy {
  const {
    bounds,
    minShares,
    outlierPenalty: _penalty,
    mode: _mode,
    steerPercent: _percent,
    ...policy
  } = config.policy;
  return {
    ...policy,
    retries: { max: policy.retries.max, min: policy.retries.min },
    bounds: bounds.map(({ frontend, pool, engine, min, max, pin }) => ({
      frontendId: frontend,
      poolId: pool,
      engineId: engine,
      min: pin ?? min,
      max: pin ?? max,
    })),
    minShares: minShares.map(({ pool, priority, share }) => ({ poolId: pool, priority, share })),
  };
}
