import type { WeightPlan } from '../../xds/index.js';

type Row = WeightPlan['rows'][number];

/**
 * What Envoys are to be told of new weights: the new row of each pool in which an engine comes or goes, or changes by
 * more than `least`, and of the others what they were told last. Undefined when that is all of them: every push
 * rebuilds load balancers in every Envoy.
 */
export function weightsToPush(pushed: WeightPlan, wanted: WeightPlan, least: number): WeightPlan | undefined {
  let isDue = false;
  const rows = wanted.rows.map((row) => {
    const last = pushed.rows.find(
      ({ frontendId, poolId }) => frontendId === row.frontendId && poolId === row.poolId,
    );
    if (last !== undefined && !differs(last, row, least)) return last;
    isDue = true;
    return row;
  });
  return isDue ? { rows } : undefined;
}

function differs(last: Row, row: Row, least: number): boolean {
  const before = new Map(last.weights.map(({ engineId, weight }) => [engineId, weight]));
  return (
    before.size !== row.weights.length ||
    row.weights.some(({ engineId, weight }) => {
      const old = before.get(engineId);
      return old === undefined || Math.abs(weight - old) > least;
    })
  );
}
