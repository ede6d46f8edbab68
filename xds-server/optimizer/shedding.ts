import type { MinShare } from '../fleet/policy.js';
import { groupBy } from './collections.js';
import { flowUnit } from './flow-problem.js';
import { type LinearSolver, ProgramBuilder } from './linear-program.js';
import type { Problem } from './problem.js';

/** Share of the hard limit that is left empty when demand is cut to fit, so that rounding never makes it fit no more. */
const MARGIN = 6e-6;
/** Shed fractions and their prices below this are none. */
const NOTHING = 1e-7;

/** One class of one row; rates in requests per second. */
interface RowClass {
  readonly row: number;
  readonly priority: number;
  /** Part of the offered rate that is decided at this level. */
  readonly rate: number;
}

/**
 * Requests per second that each class of each row gets (same order as `problem.rows` and their `classes`) when demand
 * does not fit. Guaranteed shares come first, then priorities from high to low. Within a level the largest shed
 * fraction is made as small as possible; whoever sits at that bottleneck is held there, and the rest goes on, until
 * nobody's fraction can fall without raising a higher one. Nothing is shed that any free capacity could serve.
 */
export function shareCapacity(
  solver: LinearSolver,
  problem: Problem,
  minShares: readonly MinShare[],
): readonly (readonly number[])[] {
  const served = problem.rows.map(({ classes }) => classes.map(() => 0));
  const total = new Float64Array(problem.rows.length);
  for (const level of levels(problem, minShares)) {
    let open = level.filter(({ row }) => problem.rows[row]!.endArc > problem.rows[row]!.firstArc);
    while (open.length > 0) {
      const { fraction, stuck } = shareLevel(solver, problem, total, open);
      const settled = fraction <= NOTHING ? open : stuck;
      for (const { row, priority, rate } of settled) {
        const got = fraction <= NOTHING ? rate : rate * (1 - fraction);
        total[row]! += got;
        const at = problem.rows[row]!.classes.findIndex((demand) => demand.priority === priority);
        served[row]![at]! += got;
      }
      const done = new Set(settled);
      open = open.filter((each) => !done.has(each));
    }
  }
  return served;
}

/** Guaranteed parts of all classes, then what is left of each priority, highest first. */
function levels(problem: Problem, minShares: readonly MinShare[]): RowClass[][] {
  const guaranteed: RowClass[] = [];
  const rest: RowClass[] = [];
  problem.rows.forEach(({ poolId, classes }, row) => {
    for (const { priority, requestsPerSecond } of classes) {
      const share =
        minShares.find((each) => each.poolId === poolId && each.priority === priority)?.share ?? 0;
      if (share > 0) guaranteed.push({ row, priority, rate: share * requestsPerSecond });
      if (share < 1) rest.push({ row, priority, rate: (1 - share) * requestsPerSecond });
    }
  });
  const byPriority = [...groupBy(rest, ({ priority }) => priority)].sort(([a], [b]) => b - a);
  return [guaranteed, ...byPriority.map(([, classes]) => classes)].map((level) =>
    level.filter(({ rate }) => rate > 0),
  );
}

/** The smallest possible largest shed fraction of the open classes, and the classes that cannot get below it. */
function shareLevel(
  solver: LinearSolver,
  problem: Problem,
  total: Float64Array,
  open: readonly RowClass[],
): { readonly fraction: number; readonly stuck: readonly RowClass[] } {
  const { rows, columns, arcRow, arcColumn, arcWork } = problem;
  const unit = flowUnit(Float64Array.from(rows, ({ demandRps }) => demandRps));
  const builder = new ProgramBuilder();
  const rowLower: number[] = Array.from(total, (flow) => flow / unit);
  const rowUpper: number[] = [...rowLower];
  for (const { capacity, congestion } of columns) {
    rowLower.push(-Infinity);
    rowUpper.push((congestion.max * capacity * (1 - MARGIN)) / unit);
  }
  const firstFairness = rowLower.length;
  for (const { rate } of open) {
    rowLower.push(rate / unit);
    rowUpper.push(Infinity);
  }
  const bounds = new BoundRows(problem, total, unit, rowLower, rowUpper);
  for (let arc = 0; arc < arcRow.length; arc++) {
    builder.add(0, Infinity);
    builder.entry(arcRow[arc]!, 1);
    builder.entry(rows.length + arcColumn[arc]!, arcWork[arc]!);
    bounds.arcEntries(builder, arc);
  }
  open.forEach(({ row, rate }, index) => {
    builder.add(0, rate / unit);
    builder.entry(row, -1);
    builder.entry(firstFairness + index, 1);
    bounds.servedEntries(builder, row);
  });
  const fractionAt = builder.size;
  builder.add(1, 1);
  open.forEach(({ rate }, index) => {
    builder.entry(firstFairness + index, rate / unit);
  });
  const program = builder.finish(Float64Array.from(rowLower), Float64Array.from(rowUpper));
  const { values, rowDuals } = solver.solve(program);
  const stuck = open.filter((_, index) => Math.abs(rowDuals[firstFairness + index]!) > NOTHING);
  return { fraction: values[fractionAt]!, stuck: stuck.length > 0 ? stuck : open };
}

/** Rows that hold an operator's bounds while it is still open how much of a row is served: they are shares of that. */
class BoundRows {
  readonly #problem: Problem;
  /** By arc: rows of its minimum and maximum, where it has them. */
  readonly #rowsOfArc = new Map<number, { readonly at: number; readonly share: number }[]>();

  constructor(problem: Problem, total: Float64Array, unit: number, rowLower: number[], rowUpper: number[]) {
    this.#problem = problem;
    for (let arc = 0; arc < problem.arcRow.length; arc++) {
      const min = problem.arcMin[arc]!;
      const max = problem.arcMax[arc]!;
      const flow = total[problem.arcRow[arc]!]! / unit;
      const entries: { at: number; share: number }[] = [];
      if (min > 0) {
        entries.push({ at: rowLower.length, share: min });
        rowLower.push(min * flow);
        rowUpper.push(Infinity);
      }
      if (max < 1) {
        entries.push({ at: rowLower.length, share: max });
        rowLower.push(-Infinity);
        rowUpper.push(max * flow);
      }
      if (entries.length > 0) this.#rowsOfArc.set(arc, entries);
    }
  }

  arcEntries(builder: ProgramBuilder, arc: number): void {
    for (const { at } of this.#rowsOfArc.get(arc) ?? []) builder.entry(at, 1);
  }

  servedEntries(builder: ProgramBuilder, row: number): void {
    const { firstArc, endArc } = this.#problem.rows[row]!;
    for (let arc = firstArc; arc < endArc; arc++) {
      for (const { at, share } of this.#rowsOfArc.get(arc) ?? []) builder.entry(at, -share);
    }
  }
}
