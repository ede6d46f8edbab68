import { createHash } from 'node:crypto';
import type { Plan } from './plan.js';

/** Content of a plan that filters and operators act on; memory, number and time are no part of it. */
export type PlanContent = Pick<Plan, 'rows' | 'engines' | 'objectiveSeconds'>;

/** 16 hex digits: the first 64 bits of the SHA-256 of the content. */
export function planId({ rows, engines, objectiveSeconds }: PlanContent): string {
  const content = [
    rows.map((row) => [
      row.frontendId,
      row.poolId,
      row.demandRps,
      row.weights.map(({ engineId, weight }) => [engineId, weight]),
      row.segments.map(({ start, ownerId, backupId }) => [start, ownerId, backupId]),
      row.retryRatio,
      row.shed.map(({ priority, fraction }) => [priority, fraction]),
    ]),
    engines.map((engine) => [
      engine.engineId,
      engine.effectiveCapacity,
      engine.rho,
      engine.congestionPriceSeconds,
      engine.scarcityPriceSeconds,
    ]),
    objectiveSeconds,
  ];
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}
