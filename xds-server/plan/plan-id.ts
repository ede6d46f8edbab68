import { createHash } from 'node:crypto';
import type { Plan } from './plan.js';
import { atOnce, type Steps } from './steps.js';

/** Content of a plan that filters and operators act on; memory, number and time are no part of it. */
export type PlanContent = Pick<Plan, 'rows' | 'engines' | 'objectiveSeconds'>;

/** 16 hex digits: the first 64 bits of the SHA-256 of the content. */
export function planId(content: PlanContent): string {
  return atOnce(identifying(content));
}

/** `planId`, row by row. */
export function* identifying({ rows, engines, objectiveSeconds }: PlanContent): Steps<string> {
  const hash = createHash('sha256').update('[[');
  for (const [at, row] of rows.entries()) {
    const content = [
      row.frontendId,
      row.poolId,
      row.demandRps,
      row.weights.map(({ engineId, weight }) => [engineId, weight]),
      row.segments.map(({ start, ownerId, backupId }) => [start, ownerId, backupId]),
      row.retryRatio,
      row.shed.map(({ priority, fraction }) => [priority, fraction]),
    ];
    hash.update(`${at > 0 ? ',' : ''}${JSON.stringify(content)}`);
    yield;
  }
  const stated = engines.map((engine) => [
    engine.engineId,
    engine.effectiveCapacity,
    engine.rho,
    engine.congestionPriceSeconds,
    engine.scarcityPriceSeconds,
  ]);
  hash.update(`],${JSON.stringify(stated)},${JSON.stringify(objectiveSeconds)}]`);
  return hash.digest('hex').slice(0, 16);
}
