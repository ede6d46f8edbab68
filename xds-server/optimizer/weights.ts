import type { Optimum } from './optimum.js';

/** Weights closer to the ones in force than the hash space can tell apart are the ones in force. */
const SAME_WEIGHT = 2 ** -31;
/** Marginal costs closer than this many seconds are equal: ties share by capacity. */
const TIE_SECONDS = 1e-9;
/** Without traffic, weights in force stay while they cost no more than this many seconds above the best. */
const IDLE_STAY_SECONDS = 1e-3;
/** They stay, too, while all engines of the row are this full: what the next request costs is then what it would take from others. */
const IDLE_FULL = 0.99;

/** Weight of each arc. A row's weights add up to 1, or are all 0 when nobody can serve it. */
export function arcWeights(optimum: Optimum): Float64Array {
  const { problem, served } = optimum.flowProblem;
  const weights = new Float64Array(problem.arcRow.length);
  for (let row = 0; row < problem.rows.length; row++) {
    if (served[row]! > 0) sharesOfFlow(optimum, row, weights);
    else idleShares(optimum, row, weights);
  }
  return weights;
}

function sharesOfFlow({ flows, flowProblem }: Optimum, row: number, weights: Float64Array): void {
  const { problem, served } = flowProblem;
  const { firstArc, endArc } = problem.rows[row]!;
  for (let arc = firstArc; arc < endArc; arc++) {
    const weight = flows[arc]! / served[row]!;
    const previous = problem.arcPrevious[arc]!;
    weights[arc] = Math.abs(weight - previous) <= SAME_WEIGHT ? previous : weight;
  }
}

/** Where the next request would go: the cheapest arcs, by capacity; or the weights in force if they are as good. */
function idleShares({ flowProblem, columnPrices, loads }: Optimum, row: number, weights: Float64Array): void {
  const { rows, columns, arcColumn, arcCost, arcWork, arcPrevious, arcMin, arcMax } = flowProblem.problem;
  const { firstArc, endArc, bounds } = rows[row]!;
  const arcs = Array.from({ length: endArc - firstArc }, (_, at) => firstArc + at);
  const cost = (arc: number): number => arcCost[arc]! + arcWork[arc]! * columnPrices[arcColumn[arc]!]!;
  const least = arcs.reduce((best, arc) => (arcMax[arc]! > 0 ? Math.min(best, cost(arc)) : best), Infinity);
  const inForce = arcs.reduce((sum, arc) => sum + arcPrevious[arc]!, 0);
  const average = arcs.reduce(
    (sum, arc) => sum + (arcPrevious[arc]! > 0 ? arcPrevious[arc]! * cost(arc) : 0),
    0,
  );
  const isFull = (arc: number): boolean => {
    const { congestion, capacity } = columns[arcColumn[arc]!]!;
    return loads[arcColumn[arc]!]! >= IDLE_FULL * congestion.max * capacity;
  };
  const isAsGood = average <= least + IDLE_STAY_SECONDS || arcs.every(isFull);
  if (bounds.size === 0 && inForce > 1 - 1e-6 && isAsGood) {
    for (const arc of arcs) weights[arc] = arcPrevious[arc]!;
    return;
  }
  let rest = 1;
  for (const arc of arcs) {
    weights[arc] = arcMin[arc]!;
    rest -= arcMin[arc]!;
  }
  const byCost = [...arcs].sort((a, b) => cost(a) - cost(b) || a - b);
  for (let at = 0; at < byCost.length && rest > 1e-12; ) {
    let end = at + 1;
    while (end < byCost.length && cost(byCost[end]!) - cost(byCost[at]!) <= TIE_SECONDS) end++;
    const ties = byCost.slice(at, end);
    const capacity = ties.reduce((sum, arc) => sum + columns[arcColumn[arc]!]!.capacity, 0);
    const open = rest;
    for (const arc of ties) {
      const part = Math.min(
        (open * columns[arcColumn[arc]!]!.capacity) / capacity,
        arcMax[arc]! - weights[arc]!,
      );
      weights[arc]! += part;
      rest -= part;
    }
    at = end;
  }
}
