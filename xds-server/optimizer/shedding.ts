import { groupBy } from '../collections.js';
import type { MinShare } from '../fleet/policy.js';
import { type TokenMix, workSeconds } from '../profiles/profile.js';
import { flowUnit } from './flow-problem.js';
import type { Problem } from './problem.js';
import {
  type LinearProgram,
  type LinearSolution,
  type LinearSolver,
  ProgramBuilder,
} from './program/linear-program.js';
import { missedArcs } from './program/working-set.js';
import { markedArcs } from './restrict.js';

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
  /** Of a frontend that nobody hears of. */
  readonly isUnheard: boolean;
  /** Work of a request in mean requests of the row. */
  readonly size: number;
}

/** What is served, and where it has room. */
export interface SharedCapacity {
  /** Requests per second that each class of each row gets, in the order of `problem.rows` and their `classes`. */
  readonly served: readonly (readonly number[])[];
  /** Marks arcs on which all that is served finds room. */
  readonly carrying: Uint8Array;
}

/**
 * Requests per second that each class of each row gets (same order as `problem.rows` and their `classes`) when demand
 * does not fit. Guaranteed shares come first, then priorities from high to low, frontends that nobody hears of last in each. Within a level the largest shed
 * fraction is made as small as possible; whoever sits at that bottleneck is held there, and the rest goes on, until
 * nobody's fraction can fall without raising a higher one. Nothing is shed that any free capacity could serve.
 * @param useful marks the arcs to start with, among them all of rows with bounds
 */
export function shareCapacity(
  solver: LinearSolver,
  problem: Problem,
  minShares: readonly MinShare[],
  useful: Uint8Array,
): SharedCapacity {
  const reachable = ({ row }: Part): boolean => problem.rows[row]!.endArc > problem.rows[row]!.firstArc;
  const levels = partsByLevel(problem, minShares).map((level) => level.filter(reachable));
  const sharing = new Sharing(solver, problem, levels.flat(), useful);
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
  const served = problem.rows.map(({ classes }, row) =>
    classes.map(({ priority }) => sharing.servedOf(row, priority)),
  );
  return { served, carrying: sharing.carrying };
}

/**
 * Guaranteed parts of all classes, then what is left of each priority, highest first; in each what is known to come
 * before what was held of frontends that nobody hears of.
 */
function partsByLevel(problem: Problem, minShares: readonly MinShare[]): Part[][] {
  const guaranteed: Part[] = [];
  const rest: Part[] = [];
  problem.rows.forEach(({ poolId, classes }, row) => {
    for (const demand of classes) {
      const { priority, requestsPerSecond, isUnheard = false } = demand;
      const minShare = minShares.find((each) => each.poolId === poolId && each.priority === priority);
      const share = minShare?.share ?? 0;
      const size = relativeSize(problem, row, demand);
      if (share > 0) guaranteed.push({ row, priority, rate: share * requestsPerSecond, isUnheard, size });
      if (share < 1) rest.push({ row, priority, rate: (1 - share) * requestsPerSecond, isUnheard, size });
    }
  });
  const byPriority = [...groupBy(rest, ({ priority }) => priority)].sort(([a], [b]) => b - a);
  const levels = [guaranteed, ...byPriority.map(([, parts]) => parts)].flatMap((level) => [
    level.filter(({ isUnheard }) => !isUnheard),
    level.filter(({ isUnheard }) => isUnheard),
  ]);
  return levels.map((level) => level.filter(({ rate }) => rate > 0));
}

/** Work of a request over that of its row's mean request, averaged over the row's engines. */
export function relativeSize(problem: Problem, row: number, request: TokenMix): number {
  const { rows, columns, arcColumn, arcWork } = problem;
  const { firstArc, endArc } = rows[row]!;
  let size = 0;
  for (let arc = firstArc; arc < endArc; arc++) {
    size += workSeconds(columns[arcColumn[arc]!]!.profile, request) / arcWork[arc]! / (endArc - firstArc);
  }
  return size;
}

/**
 * One linear program for all levels and rounds. Variables: served rate of each part, the largest shed fraction, flow on
 * each arc. Rows: each row's flows, in mean requests, add up to its parts; loads stay below the limits; an open part is served at least
 * 1 - fraction; operators' bounds. From round to round only bounds change, and arcs join that prices show to be useful,
 * so each run starts where the last one ended.
 */
class Sharing {
  readonly #solver: LinearSolver;
  readonly #problem: Problem;
  readonly #parts: ReadonlyMap<Part, number>;
  readonly #unit: number;
  readonly #builder = new ProgramBuilder();
  readonly #rowLower: Float64Array;
  readonly #rowUpper: Float64Array;
  readonly #firstFairness: number;
  readonly #fraction: number;
  readonly #isOffered: Uint8Array;
  /** Arcs in the order of their variables, and the first of these. */
  readonly #offered: number[] = [];
  readonly #firstArc: number;
  #carrying = new Uint8Array();
  readonly #served = new Map<Part, number>();
  #started = false;

  constructor(solver: LinearSolver, problem: Problem, parts: readonly Part[], useful: Uint8Array) {
    const { rows, columns } = problem;
    this.#solver = solver;
    this.#problem = problem;
    this.#parts = new Map(parts.map((part, at) => [part, at]));
    this.#unit = flowUnit(Float64Array.from(rows, ({ demandRps }) => demandRps));
    const rowLower = rows.map(() => 0);
    const rowUpper = rows.map(() => 0);
    for (const { capacity, congestion } of columns) {
      rowLower.push(-Infinity);
      rowUpper.push((congestion.max * capacity * (1 - MARGIN)) / this.#unit);
    }
    this.#firstFairness = rowLower.length;
    for (const _ of parts) {
      rowLower.push(-Infinity);
      rowUpper.push(Infinity);
    }
    const bounds = new BoundRows(problem, rowLower, rowUpper);
    this.#rowLower = Float64Array.from(rowLower);
    this.#rowUpper = Float64Array.from(rowUpper);
    parts.forEach(({ row, size }, at) => {
      this.#builder.add(0, 0);
      this.#builder.entry(row, -size);
      this.#builder.entry(this.#firstFairness + at, 1);
      bounds.servedEntries(this.#builder, row, size);
    });
    this.#fraction = this.#builder.size;
    this.#builder.add(1, 1);
    parts.forEach(({ rate }, at) => {
      this.#builder.entry(this.#firstFairness + at, rate / this.#unit);
    });
    this.#isOffered = Uint8Array.from(useful);
    this.#firstArc = this.#builder.size;
    for (const arc of markedArcs(this.#isOffered)) {
      this.#offer(arc);
      bounds.arcEntries(this.#builder, arc);
    }
  }

  /** The smallest possible largest shed fraction of the open parts, and the parts that cannot get below it. */
  shareAmong(open: readonly Part[]): { readonly fraction: number; readonly stuck: readonly Part[] } {
    const { values, rowDuals } = this.#solve(open);
    const price = (part: Part): number => Math.abs(rowDuals[this.#firstFairness + this.#indexOf(part)]!);
    const stuck = open.filter((part) => price(part) > NOTHING);
    return { fraction: values[this.#fraction]!, stuck: stuck.length > 0 ? stuck : open };
  }

  /** Marks the arcs with flow in the last round. */
  get carrying(): Uint8Array {
    return this.#carrying;
  }

  /** Adds arcs until the prices show none that could lower the fraction. */
  #solve(open: readonly Part[]): LinearSolution {
    const { rows, columns, arcCost } = this.#problem;
    const free = new Float64Array(arcCost.length);
    for (;;) {
      const solution = this.#solver.solve(this.#programFor(open), { resume: this.#started });
      this.#started = true;
      const limits = Float64Array.from(rows, (_, row) => solution.rowDuals[row]! - NOTHING);
      const prices = Float64Array.from(columns, (_, column) => -solution.rowDuals[rows.length + column]!);
      const missed = missedArcs(this.#problem, free, prices, limits, this.#isOffered);
      if (missed.length === 0) {
        this.#noteCarrying(solution);
        return solution;
      }
      for (const arc of missed) {
        this.#isOffered[arc] = 1;
        this.#offer(arc);
      }
    }
  }

  /** Open parts may be served up to their rate and count in the fraction; settled ones keep what they have. */
  #programFor(open: readonly Part[]): LinearProgram {
    const program = this.#builder.finish(Float64Array.from(this.#rowLower), this.#rowUpper);
    for (const [part, rate] of this.#served) {
      program.lower[this.#indexOf(part)] = rate / this.#unit;
      program.upper[this.#indexOf(part)] = rate / this.#unit;
    }
    for (const part of open) {
      program.upper[this.#indexOf(part)] = part.rate / this.#unit;
      program.rowLower[this.#firstFairness + this.#indexOf(part)] = part.rate / this.#unit;
    }
    return program;
  }

  #noteCarrying({ values }: LinearSolution): void {
    this.#carrying = new Uint8Array(this.#isOffered.length);
    this.#offered.forEach((arc, at) => {
      if (values[this.#firstArc + at]! > 0) this.#carrying[arc] = 1;
    });
  }

  #offer(arc: number): void {
    const { rows, arcRow, arcColumn, arcWork } = this.#problem;
    this.#offered.push(arc);
    this.#builder.add(0, Infinity);
    this.#builder.entry(arcRow[arc]!, 1);
    this.#builder.entry(rows.length + arcColumn[arc]!, arcWork[arc]!);
  }

  /** Fixes the shed fraction of a part. */
  settle(part: Part, fraction: number): void {
    this.#served.set(part, fraction >= 1 - NOTHING ? 0 : part.rate * (1 - fraction));
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

  servedEntries(builder: ProgramBuilder, row: number, size: number): void {
    const { firstArc, endArc } = this.#problem.rows[row]!;
    for (let arc = firstArc; arc < endArc; arc++) {
      for (const { at, share } of this.#rowsOfArc.get(arc) ?? []) builder.entry(at, -share * size);
    }
  }
}
