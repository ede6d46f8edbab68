import type { MinShare } from '../fleet/policy.js';
import { groupBy } from './collections.js';
import { flowUnit } from './flow-problem.js';
import { type LinearProgram, type LinearSolver, ProgramBuilder } from './linear-program.js';
import type { Problem } from './problem.js';

/**
 * Share of the hard limit that is left empty when demand is cut to fit: more than the width in which the worth of
 * capacity rises (see congestion.ts), so that it can still tell scarce engines from others.
 */
const MARGIN = 6e-6;
/** Shed fractions and their prices below this are none. */
const NOTHING = 1e-7;

/** The part of one class of one row that is decided at one level. */
interface Part {
  readonly row: number;
  readonly priority: number;
  /** Offered requests per second. */
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
  const reachable = ({ row }: Part): boolean => problem.rows[row]!.endArc > problem.rows[row]!.firstArc;
  const levels = partsByLevel(problem, minShares).map((level) => level.filter(reachable));
  const sharing = new Sharing(solver, problem, levels.flat());
  for (const level of levels) {
    let open = level;
    while (open.length > 0) {
      const { fraction, stuck } = sharing.shareAmong(open);
      const settled = fraction <= NOTHING ? open : stuck;
      for (const part of settled) sharing.settle(part, fraction <= NOTHING ? 0 : fraction);
      const done = new Set(settled);
      open = open.filter((part) => !done.has(part));
    }
  }
  return problem.rows.map(({ classes }, row) =>
    classes.map(({ priority }) => sharing.servedOf(row, priority)),
  );
}

/** Guaranteed parts of all classes, then what is left of each priority, highest first. */
function partsByLevel(problem: Problem, minShares: readonly MinShare[]): Part[][] {
  const guaranteed: Part[] = [];
  const rest: Part[] = [];
  problem.rows.forEach(({ poolId, classes }, row) => {
    for (const { priority, requestsPerSecond } of classes) {
      const minShare = minShares.find((each) => each.poolId === poolId && each.priority === priority);
      const share = minShare?.share ?? 0;
      if (share > 0) guaranteed.push({ row, priority, rate: share * requestsPerSecond });
      if (share < 1) rest.push({ row, priority, rate: (1 - share) * requestsPerSecond });
    }
  });
  const byPriority = [...groupBy(rest, ({ priority }) => priority)].sort(([a], [b]) => b - a);
  return [guaranteed, ...byPriority.map(([, parts]) => parts)].map((level) =>
    level.filter(({ rate }) => rate > 0),
  );
}

/**
 * One linear program for all levels and rounds. Variables: flow on each arc, served rate of each part, the largest shed
 * fraction. Rows: each row's flows add up to its parts; loads stay below the limits; an open part is served at least
 * 1 - fraction; operators' bounds. Only bounds change from round to round, so each starts where the last one ended.
 */
class Sharing {
  readonly #solver: LinearSolver;
  readonly #parts: ReadonlyMap<Part, number>;
  readonly #unit: number;
  readonly #program: LinearProgram;
  readonly #firstPart: number;
  readonly #firstFairness: number;
  readonly #served = new Map<Part, number>();
  #started = false;

  constructor(solver: LinearSolver, problem: Problem, parts: readonly Part[]) {
    const { rows, columns, arcRow, arcColumn, arcWork } = problem;
    const unit = flowUnit(Float64Array.from(rows, ({ demandRps }) => demandRps));
    const builder = new ProgramBuilder();
    const rowLower = rows.map(() => 0);
    const rowUpper = rows.map(() => 0);
    for (const { capacity, congestion } of columns) {
      rowLower.push(-Infinity);
      rowUpper.push((congestion.max * capacity * (1 - MARGIN)) / unit);
    }
    this.#firstFairness = rowLower.length;
    for (const _ of parts) {
      rowLower.push(-Infinity);
      rowUpper.push(Infinity);
    }
    const bounds = new BoundRows(problem, rowLower, rowUpper);
    for (let arc = 0; arc < arcRow.length; arc++) {
      builder.add(0, Infinity);
      builder.entry(arcRow[arc]!, 1);
      builder.entry(rows.length + arcColumn[arc]!, arcWork[arc]!);
      bounds.arcEntries(builder, arc);
    }
    this.#firstPart = builder.size;
    parts.forEach(({ row }, at) => {
      builder.add(0, 0);
      builder.entry(row, -1);
      builder.entry(this.#firstFairness + at, 1);
      bounds.servedEntries(builder, row);
    });
    builder.add(1, 1);
    parts.forEach(({ rate }, at) => {
      builder.entry(this.#firstFairness + at, rate / unit);
    });
    this.#solver = solver;
    this.#parts = new Map(parts.map((part, at) => [part, at]));
    this.#unit = unit;
    this.#program = builder.finish(Float64Array.from(rowLower), Float64Array.from(rowUpper));
  }

  /** The smallest possible largest shed fraction of the open parts, and the parts that cannot get below it. */
  shareAmong(open: readonly Part[]): { readonly fraction: number; readonly stuck: readonly Part[] } {
    const upper = Float64Array.from(this.#program.upper);
    const rowLower = Float64Array.from(this.#program.rowLower);
    for (const part of open) {
      upper[this.#firstPart + this.#indexOf(part)] = part.rate / this.#unit;
      rowLower[this.#firstFairness + this.#indexOf(part)] = part.rate / this.#unit;
    }
    const program = { ...this.#program, upper, rowLower };
    const { values, rowDuals } = this.#solver.solve(program, { resume: this.#started });
    this.#started = true;
    const price = (part: Part): number => Math.abs(rowDuals[this.#firstFairness + this.#indexOf(part)]!);
    const stuck = open.filter((part) => price(part) > NOTHING);
    return { fraction: values.at(-1)!, stuck: stuck.length > 0 ? stuck : open };
  }

  /** Fixes the shed fraction of a part. */
  settle(part: Part, fraction: number): void {
    const rate = part.rate * (1 - fraction);
    const at = this.#firstPart + this.#indexOf(part);
    this.#served.set(part, rate);
    this.#program.lower[at] = rate / this.#unit;
    this.#program.upper[at] = rate / this.#unit;
  }

  servedOf(row: number, priority: number): number {
    let total = 0;
    for (const [part, rate] of this.#served)
      if (part.row === row && part.priority === priority) total += rate;
    return total;
  }

  #indexOf(part: Part): number {
    return this.#parts.get(part)!;
  }
}

/** Rows that hold an operator's bounds while it is still open how much of a row is served: they are shares of that. */
class BoundRows {
  readonly #problem: Problem;
  /** By arc: rows of its minimum and maximum, where it has them. */
  readonly #rowsOfArc = new Map<number, { readonly at: number; readonly share: number }[]>();

  constructor(problem: Problem, rowLower: number[], rowUpper: number[]) {
    this.#problem = problem;
    for (let arc = 0; arc < problem.arcRow.length; arc++) {
      const min = problem.arcMin[arc]!;
      const max = problem.arcMax[arc]!;
      const entries: { at: number; share: number }[] = [];
      if (min > 0) {
        entries.push({ at: rowLower.length, share: min });
        rowLower.push(0);
        rowUpper.push(Infinity);
      }
      if (max < 1) {
        entries.push({ at: rowLower.length, share: max });
        rowLower.push(-Infinity);
        rowUpper.push(0);
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
