import { rowKey } from '../fleet/row-key.js';
import { workSeconds } from '../profiles/profile.js';
import type { SilentFrontend } from './demand/fleet-demand.js';
import type { KnownConfig } from './known-config.js';

/** After this long a silent frontend is more likely gone than cut off. */
const AWAITED_SECONDS = 3_600;
/** Work that takes less than this share of an engine's capacity changes nothing that is said of it. */
const NEGLIGIBLE_SHARE = 0.05;

/** What is believed of those that send requests. */
interface Senders {
  /** Requests per second of a frontend by pool id. */
  ratesByPool(frontendId: string): ReadonlyMap<string, number>;
  isReachable(frontendId: string, engineId: string): boolean;
}

/**
 * Engines that may have more than a little work that nobody tells of: where an Envoy that is cut off sends its requests is not known, so
 * all that its frontend asks of a pool may be at any engine of it. `capacities`: by engine id, penalties left out.
 */
export function unheardEngines(
  silent: readonly SilentFrontend[],
  senders: Senders,
  { fleet, engineIndex, profiles, expected }: KnownConfig,
  capacities: ReadonlyMap<string, number>,
): ReadonlySet<string> {
  const work = new Map<string, number>();
  for (const { frontendId, silentSeconds } of silent) {
    if (silentSeconds > AWAITED_SECONDS) continue;
    const rates = senders.ratesByPool(frontendId);
    for (const { id: poolId, engineIds } of fleet.pools) {
      const rate = rates.get(poolId) ?? 0;
      if (rate === 0) continue;
      const shape = expected.get(rowKey({ frontendId, poolId }))!;
      for (const id of engineIds) {
        if (!senders.isReachable(frontendId, id)) continue;
        const profile = profiles.get(fleet.engines[engineIndex.get(id)!]!.profile)!;
        work.set(id, (work.get(id) ?? 0) + rate * workSeconds(profile, shape));
      }
    }
  }
  const isMuch = (id: string, seconds: number) => seconds > NEGLIGIBLE_SHARE * (capacities.get(id) ?? 0);
  return new Set([...work].flatMap(([id, seconds]) => (isMuch(id, seconds) ? [id] : [])));
}
