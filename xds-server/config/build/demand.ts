import type { Fleet } from '../../fleet/fleet.js';
import type { ExpectedDemand } from '../config.js';
import type { ConfigFile } from '../schema/schema.js';
import { ASSUMED_RATE } from './assumed-rate.js';

export function buildExpectedDemand(config: ConfigFile, fleet: Fleet): readonly ExpectedDemand[] {
  return fleet.frontends.flatMap((frontend) =>
    fleet.pools.map((pool) => {
      const { models, pools, ...common } = config.demand[frontend.id] ?? {};
      const rate = {
        ...ASSUMED_RATE,
        ...common,
        ...models?.[pool.model],
        // Nobody can say how many requests of a model carry needs.
        ...(pool.needs.length > 0 ? { requestsPerSecond: 0 } : {}),
        ...pools?.[pool.id],
      };
      const uncachedPromptTokens = Math.min(
        rate.uncachedPromptTokens ?? rate.promptTokens,
        rate.promptTokens,
      );
      return { frontendId: frontend.id, poolId: pool.id, ...rate, uncachedPromptTokens };
    }),
  );
}
