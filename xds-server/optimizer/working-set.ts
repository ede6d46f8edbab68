import { type FlowProblem, loadsOf } from './flow-problem.js';
import { costTolerance, type PolishedFlows, polish } from './polish.js';
import { pick, restrict } from './restrict.js';

/** Cheapest arcs of each row that take part from the start, beside those with flow. */
const CHEAPEST = 16;
/** Arcs of a row that join when they turn out to be cheaper than those in use. */
const MOST_JOINING = 8;

/**
 * The polish on a problem with many more arcs than an optimum uses: on the arcs that carry flow and the cheapest few of
 * each row, then again with all arcs that the prices show to have been missed, until there are none.
 */
export function polishWhole(whole: FlowProblem, start: Float64Array, basic: Uint8Array): PolishedFlows {
  const flows = Float64Array.from(start);
  const free = Uint8Array.from(basic);
  const isKept = startingSet(whole, flows, free);
  for (;;) {
    const { flowProblem, arcs } = restrict(whole, isKept);
    const polished = polish(flowProblem, pick(flows, arcs), pick(free, arcs));
    arcs.forEach((arc, at) => {
      flows[arc] = polished.flows[at]!;
      free[arc] = polished.free[at]!;
    });
    const missed = polished.converged ? missedArcs(whole, polished, isKept) : [];
    if (missed.length === 0) return { ...polished, flows, free };
    for (const arc of missed) isKept[arc] = 1;
  }
}

function startingSet(whole: FlowProblem, flows: Float64Array, free: Uint8Array): Uint8Array {
  const { problem, kink, lower } = whole;
  const loads = loadsOf(whole, flows);
  const prices = Float64Array.from(problem.columns, ({ capacity, congestion }, column) =>
    congestion.worth(Math.min(loads[column]! / capacity, congestion.max)),
  );
  const isKept = free.map((isFree, arc) =>
    isFree || flows[arc]! > 0 || kink[arc]! > 0 || lower[arc]! > 0 ? 1 : 0,
  );
  for (const { firstArc, endArc, bounds } of problem.rows) {
    if (bounds.size > 0) isKept.fill(1, firstArc, endArc);
    else
      for (const arc of cheapest(whole, prices, firstArc, endArc, CHEAPEST, Infinity, isKept))
        isKept[arc] = 1;
  }
  return isKept;
}

/** Arcs outside the set that cost a row less than what it pays. */
function missedArcs(
  whole: FlowProblem,
  { columnPrices, rowCosts }: PolishedFlows,
  isKept: Uint8Array,
): number[] {
  return whole.problem.rows.flatMap(({ firstArc, endArc }, row) => {
    const limit = rowCosts[row]! - costTolerance(rowCosts[row]!);
    return cheapest(whole, columnPrices, firstArc, endArc, MOST_JOINING, limit, isKept);
  });
}

/** The cheapest arcs outside the set that cost less than `limit`. */
function cheapest(
  whole: FlowProblem,
  prices: Float64Array,
  firstArc: number,
  endArc: number,
  most: number,
  limit: number,
  isKept: Uint8Array,
): number[] {
  const arcs: number[] = [];
  const costs: number[] = [];
  for (let arc = firstArc; arc < endArc; arc++) {
    if (isKept[arc]) continue;
    const cost = costOf(whole, prices, arc);
    if (cost >= limit || (arcs.length === most && cost >= costs[most - 1]!)) continue;
    let at = arcs.length;
    while (at > 0 && costs[at - 1]! > cost) at--;
    arcs.splice(at, 0, arc);
    costs.splice(at, 0, cost);
    if (arcs.length > most) {
      arcs.pop();
      costs.pop();
    }
  }
  return arcs;
}

function costOf({ problem }: FlowProblem, prices: Float64Array, arc: number): number {
  return problem.arcCost[arc]! + problem.arcWork[arc]! * prices[problem.arcColumn[arc]!]!;
}
