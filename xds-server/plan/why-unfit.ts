import type { FleetState } from '../fleet/fleet-state.js';
import { eligibleIds } from '../fleet/last-resort.js';
import { checkSnapshots } from './make-plan.js';
import type { Plan } from './plan.js';

/** Why a plan that was not made for the fleet of now cannot be published for it; undefined when it can. */
export function whyUnfit(plan: Plan, state: FleetState): string | undefined {
  const { frontends, pools } = state.fleet;
  for (const { id: frontendId } of frontends) {
    for (const pool of pools) {
      const poolId = pool.id;
      const row = plan.rows.find((entry) => entry.frontendId === frontendId && entry.poolId === poolId);
      if (row === undefined) return `it says nothing about ${poolId} for ${frontendId}`;
      const eligible = eligibleIds(pool);
      const isServed = row.segments.some(({ ownerId }) => eligible.includes(ownerId));
      if (row.segments.length > 0 && !isServed) return `nobody of ${poolId} for ${frontendId} is left`;
    }
  }
  try {
    checkSnapshots(plan, state);
  } catch (error) {
    return (error as Error).message;
  }
  return undefined;
}
