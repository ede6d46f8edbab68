import { costTolerance } from '../polish/node-prices.js';
import { type PolishedFlows, polish } from '../polish/polish.js';
import { type FlowProblem, loadsOf } from '../problem/flow-problem.js';
import type { Problem } from '../problem/problem.js';
import { restrict, widen } from '../problem/restrict.js';

/** Cheapest arcs of each row that take part from the start, beside those with flow. */
const CHEAPEST = 16;
/** The same in a polish: the fewer there are, the less there is to look at in each of many passes, and what is missing joins. */
const FEWEST = 6;
/** Arcs of a row that join when they turn out to be cheaper than those in use. */
const MOST_JOINING = 16;
/** With no more seconds to be gained per request, prices tell well enough which arcs were missed. */
const ROUGH_SECONDS = 0.1;

export interface PolishedWhole extends Pick<PolishedFlows, 'flows' | 'columnPrices' | 'converged'> {
  /** Marks the working set. */
  readonly useful: Uint8Array;
}

/**
 * The polish on a problem with many more arcs than an optimum uses: on a working set, then again with all arcs that the
 * prices show to have been missed, until there are none.
 */
export function polishWhole(whole: FlowProblem, start: Float64Array, basic: Uint8Array): PolishedWhole {
  const useful = workingSet(whole, start, FEWEST);
  for (let arc = 0; arc < basic.length; arc++) useful[arc]! |= basic[arc]!;
  let restriction = restrict(whole, useful);
  let flows = restriction.picked.values(start);
  let free = restriction.picked.marks(basic);
  for (let enough = ROUGH_SECONDS; ; enough = 0) {
    const polished = polish(restriction.flowProblem, flows, free, enough);
    const { converged, columnPrices } = polished;
    const limits = leastGainful(polished.rowCosts);
    const isRough = !converged && enough > 0;
    const missed =
      converged || isRough
        ? missedArcs(whole.problem, whole.problem.arcCost, columnPrices, limits, useful)
        : [];
    if (missed.length === 0 && !isRough) {
      return {
        flows: spread(polished.flows, restriction.picked.arcs, start),
        columnPrices,
        converged,
        useful,
      };
    }
    for (const arc of missed) useful[arc] = 1;
    restriction = widen(whole, restriction, missed);
    flows = restriction.picked.values(start, polished.flows);
    free = restriction.picked.marks(basic, polished.free);
  }
}

/** Values of some arcs put in the place of those of a whole. */
function spread(values: Float64Array, arcs: Int32Array, whole: Float64Array): Float64Array {
  const all = whole.slice();
  for (let at = 0; at < arcs.length; at++) all[arcs[at]!] = values[at]!;
  return all;
}

/** Marks arcs with flow now or in force, all arcs of rows with bounds, and the cheapest few of each row. */
export function workingSet(whole: FlowProblem, flows: Float64Array, cheapest = CHEAPEST): Uint8Array {
  const { problem, kink, lower } = whole;
  const loads = loadsOf(whole, flows);
  const prices = new Float64Array(loads.length);
  for (let column = 0; column < loads.length; column++) {
    const { capacity, congestion } = problem.columns[column]!;
    prices[column] = congestion.worth(loads[column]! / capacity);
  }
  const isKept = new Uint8Array(flows.length);
  for (let arc = 0; arc < flows.length; arc++) {
    if (flows[arc]! > 0 || kink[arc]! > 0 || lower[arc]! > 0) isKept[arc] = 1;
  }
  for (const { firstArc, endArc, bounds } of problem.rows) {
    if (bounds.size > 0) isKept.fill(1, firstArc, endArc);
  }
  const limits = new Float64Array(problem.rows.length).fill(Infinity);
  for (const arc of missedArcs(problem, problem.arcCost, prices, limits, isKept, cheapest)) isKept[arc] = 1;
  return isKept;
}

/** Of each row, the cheapest arcs outside the set that cost less than the row's limit: `cost + work * price`. */
export function missedArcs(
  { rows, arcColumn, arcWork }: Problem,
  costs: Float64Array,
  prices: Float64Array,
  limits: Float64Array,
  isKept: Uint8Array,
  most = MOST_JOINING,
): number[] {
  const missed: number[] = [];
  const bestArcs = new Int32Array(most + 1);
  const bestCosts = new Float64Array(most + 1);
  for (let row = 0; row < rows.length; row++) {
    const { firstArc, endArc } = rows[row]!;
    let size = 0;
    for (let arc = firstArc; arc < endArc; arc++) {
      if (isKept[arc]) continue;
      const cost = costs[arc]! + arcWork[arc]! * prices[arcColumn[arc]!]!;
      if (!(cost < limits[row]!) || (size === most && cost >= bestCosts[most - 1]!)) continue;
      let at = size;
      for (; at > 0 && bestCosts[at - 1]! > cost; at--) {
        bestCosts[at] = bestCosts[at - 1]!;
        bestArcs[at] = bestArcs[at - 1]!;
      }
      bestCosts[at] = cost;
      bestArcs[at] = arc;
      size = Math.min(size + 1, most);
    }
    for (let at = 0; at < size; at++) missed.push(bestArcs[at]!);
  }
  return missed;
}

/** Costs of arcs, by row, from which on a row would gain nothing by using them. */
function leastGainful(rowCosts: Float64Array): Float64Array {
  const limits = rowCosts.slice();
  for (let row = 0; row < limits.length; row++) limits[row]! -= costTolerance(rowCosts[row]!);
  return limits;
}
