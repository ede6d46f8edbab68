import { WardropError } from '../../errors.js';
import { arcSize, flowUnit, loadsOf } from '../problem/flow-problem.js';
import type { Problem } from '../problem/problem.js';
import { markedArcs } from '../problem/restrict.js';
import {
  AT_LOWER,
  AT_UPPER,
  BASIC,
  type Basis,
  type LinearProgram,
  type LinearSolution,
  type LinearSolver,
  ProgramBuilder,
  type RunOptions,
} from './linear-program.js';
import { StartTrees } from './start-trees.js';
import { missedArcs } from './working-set.js';

/** Shed fractions and their prices below this are none. */
export const NO_FRACTION = 1e-7;
/** So are shares of what a round's fraction costs. Parts that ask for so little beside others are looked at in a round of their own. */
const NO_SHARE = 1e-7;
/**
 * Share of the hard limit that is left empty when demand is cut to fit: more than the width in which the worth of
 * capacity rises (see congestion.ts), so that it can still tell scarce engines from others.
 */
const MARGIN = 6e-6;
/** Engines that are this near their limit count as full when it is guessed where demand does not fit. */
const NEARLY_FULL = 0.97;

/**
 * Share of what will be served of a row by which it may fall short where a later round would have no solution else: flows
 * of a run fit within its tolerance only, and what fitted in one need not fit to the last bit in the next. Ten times as much
 * in each trial, up to the most.
 */
const LEAST_SLACK = 1e-9;
const MOST_SLACK = 1e-4;

/** In the place of an arc. */
const FRACTION = -1;

/** A part of what is asked for of one row. */
export interface SharedPart {
  readonly row: number;
  /** Offered requests per second. */
  readonly rate: number;
  /** Work of a request in mean requests of the row. */
  readonly size: number;
}

/** How a search for room ended. */
export interface Search {
  /** Marks the arcs to start with, among them all of rows with bounds and with flow. */
  readonly useful: Uint8Array;
  /** Requests per second by arc, near what will be served in proportion. */
  readonly flows: Float64Array;
}

/**
 * One linear program for all levels and rounds. Variables: flow on each arc, and for each round the largest shed fraction, or
 * by how much it falls below that of the round before. Rows: each row's flows, in mean requests, are at least what its parts
 * ask for less what is shed; loads stay below the limits; operators' bounds. From round to round only bounds change, arcs
 * join that prices show to be useful, and the fraction of the parts that are still open joins, so each run starts where
 * the last one ended.
 */
export class SharingProgram {
  readonly #solver: LinearSolver;
  readonly #problem: Problem;
  readonly #unit: number;
  readonly #builder: ProgramBuilder;
  /** By row and column of the problem: about what will be served, and what can be done, in units. */
  readonly #sizes: Float64Array;
  /** The least share of a row that will be served, about. */
  readonly #leastServed: number;
  /** What the parts asked so far ask for, by row, in units. */
  readonly #asked: Float64Array;
  readonly #demandRows: DemandRows;
  readonly #rowLower: Float64Array;
  readonly #rowUpper: Float64Array;
  /** Where the first run starts: flows by arc. */
  readonly #startFlows: Float64Array;
  readonly #isOffered: Uint8Array;
  /** By variable: its arc, or `FRACTION`. */
  readonly #arcs: number[] = [];
  /** Variables of fractions in former rounds, and their values. */
  readonly #fixed = new Map<number, number>();
  /** The largest shed fraction in the last round of this level. */
  #fraction = 0;
  #isFirstRound = true;
  #carrying = new Uint8Array();
  /** How the next run starts; nothing before the first. */
  #next: RunOptions | undefined;
  #slack = 0;
  readonly #isBounded: boolean;

  constructor(solver: LinearSolver, problem: Problem, { useful, flows }: Search) {
    const { rows, columns } = problem;
    this.#solver = solver;
    this.#problem = problem;
    this.#isBounded = rows.some(({ bounds }) => bounds.size > 0);
    this.#unit = flowUnit(Float64Array.from(rows, ({ askedRps }) => askedRps));
    this.#asked = new Float64Array(rows.length);
    this.#demandRows = new DemandRows(problem);
    this.#rowLower = new Float64Array(this.#demandRows.end);
    this.#rowUpper = new Float64Array(this.#demandRows.end).fill(Infinity);
    columns.forEach(({ capacity, congestion }, column) => {
      this.#rowLower[rows.length + column] = -Infinity;
      this.#rowUpper[rows.length + column] = (congestion.max * capacity * (1 - MARGIN)) / this.#unit;
    });
    const expected = expectedShares(problem);
    this.#leastServed = expected.reduce((least, share) => Math.min(least, share), 1);
    this.#sizes = Float64Array.from([
      ...rows.map(({ askedRps }, row) => (askedRps * expected[row]!) / this.#unit),
      ...columns.map(({ capacity }) => capacity / this.#unit),
    ]);
    this.#builder = new ProgramBuilder(this.#demandRows.sizes(this.#sizes));
    this.#startFlows = flows;
    this.#isOffered = Uint8Array.from(useful);
    for (const arc of markedArcs(this.#isOffered)) this.#offer(arc);
  }

  /** Begins a level: from now on these parts are to be served, too. */
  ask(parts: readonly SharedPart[]): void {
    for (const { row, size, rate } of parts) this.#asked[row]! += (size * rate) / this.#unit;
    this.#demandRows.setSides(this.#asked, this.#rowLower, this.#rowUpper);
    this.#fraction = 0;
    this.#isFirstRound = true;
  }

  /** The smallest possible largest shed fraction of the open parts, and the parts that cannot get below it. */
  shareAmong<P extends SharedPart>(
    open: readonly P[],
  ): { readonly fraction: number; readonly stuck: readonly P[] } {
    const isFirst = this.#isFirstRound;
    const variable = this.#addFraction(open);
    const solution = this.#solve();
    if (!solution) {
      this.#fixed.set(variable, isFirst ? 1 : 0);
      if (isFirst) this.#fraction = 1;
      return { fraction: this.#fraction, stuck: open };
    }
    const { values, rowDuals } = solution;
    this.#fixed.set(variable, values[variable]!);
    this.#fraction += values[variable]!;
    const shareOfCost = ({ row, size, rate }: SharedPart): number => {
      let price = 0;
      for (const { at, share } of this.#demandRows.of(row)) price += share * rowDuals[at]!;
      return (price * size * rate * this.#leastServed) / this.#unit;
    };
    const stuck = open.filter((part) => shareOfCost(part) > NO_SHARE);
    const isNothingServed = 1 - this.#fraction < NO_FRACTION * this.#leastServed;
    return { fraction: isNothingServed ? 1 : this.#fraction, stuck: stuck.length > 0 ? stuck : open };
  }

  /** Marks the arcs with flow in the last round. */
  get carrying(): Uint8Array {
    return this.#carrying;
  }

  /** The first of a level sheds; a later one gives back of that to those who are still open. */
  #addFraction(open: readonly SharedPart[]): number {
    const shed = new Float64Array(this.#asked.length);
    for (const { row, size, rate } of open) shed[row]! += (size * rate) / this.#unit;
    const variable = this.#builder.size;
    const cost = 1 / this.#leastServed;
    if (this.#isFirstRound) this.#builder.add(cost, 1, this.#leastServed);
    else this.#builder.add(cost, 0, this.#leastServed, -this.#fraction);
    this.#isFirstRound = false;
    shed.forEach((flow, row) => {
      if (flow > 0)
        for (const { at, share } of this.#demandRows.of(row)) this.#builder.entry(at, share * flow);
    });
    this.#arcs.push(FRACTION);
    return variable;
  }

  /**
   * Adds arcs until the prices show none that could lower the fraction. Where HiGHS loses its way, what it found with fewer arcs
   * holds, and without that nothing: the flows of the round before still do.
   */
  #solve(): LinearSolution | undefined {
    const { rows, columns, arcCost } = this.#problem;
    const free = new Float64Array(arcCost.length);
    let found: LinearSolution | undefined;
    let solution = this.#run(this.#next ?? { basis: this.#startBasis() });
    while (solution) {
      found = solution;
      const { rowDuals } = solution;
      const limits = Float64Array.from(rows, (_, row) => rowDuals[row]! - NO_FRACTION);
      const prices = Float64Array.from(columns, (_, column) => -rowDuals[rows.length + column]!);
      const missed = missedArcs(this.#problem, free, prices, limits, this.#isOffered);
      if (missed.length === 0) break;
      for (const arc of missed) {
        this.#isOffered[arc] = 1;
        this.#offer(arc);
      }
      solution = this.#run({ resume: true, isPrimal: true });
    }
    if (found) this.#noteCarrying(found);
    return found;
  }

  /** Nothing where HiGHS finds no flows, although those of an earlier run would do. */
  #run(options: RunOptions): LinearSolution | undefined {
    const slack = this.#slack;
    let how = options;
    this.#next = { resume: true };
    for (;;) {
      try {
        return this.#solver.solve(this.#program(), how);
      } catch (error) {
        const isRefused = error instanceof WardropError && error.code === 'WARDROP_SOLVER_FAILED';
        if (this.#fixed.size === 0 || !isRefused) throw error;
        // Checks cannot tell whether a row with bounds is refused too much.
        if (this.#slack >= MOST_SLACK && this.#isBounded) throw error;
      }
      how = {};
      if (this.#slack >= MOST_SLACK) break;
      this.#slack = Math.max(LEAST_SLACK, 10 * this.#slack);
    }
    this.#slack = slack;
    this.#next = how;
    return undefined;
  }

  /** Trees of the flows to start with, all full engines full; the largest of full ones has the fraction to make up. */
  #startBasis(): Basis {
    const { rows, columns } = this.#problem;
    const flows = this.#flowsOfAsked();
    const loads = loadsOf({ problem: this.#problem }, flows);
    const room = loads.map((load, column) => NEARLY_FULL * this.#rowUpper[rows.length + column]! - load);
    const trees = new StartTrees(this.#problem, flows, room);
    const colStatus = new Int32Array(this.#builder.size).fill(AT_LOWER);
    const rowStatus = new Int32Array(this.#demandRows.end).fill(BASIC);
    rowStatus.fill(AT_LOWER, 0, rows.length).fill(AT_UPPER, rows.length, rows.length + columns.length);
    this.#arcs.forEach((arc, variable) => {
      if (arc >= 0 && trees.isTied[arc]) colStatus[variable] = BASIC;
    });
    const full = trees.roots.find((root) => !trees.hasRoom(root));
    for (const root of trees.roots) {
      if (root === full) colStatus[this.#arcs.indexOf(FRACTION)] = BASIC;
      else rowStatus[root] = BASIC;
    }
    return { colStatus, rowStatus };
  }

  /** The flows to start with, each row's in proportion such that they add up to what is asked for, in units. */
  #flowsOfAsked(): Float64Array {
    const flows = new Float64Array(this.#startFlows.length);
    this.#problem.rows.forEach(({ firstArc, endArc }, row) => {
      let total = 0;
      for (let arc = firstArc; arc < endArc; arc++) total += this.#startFlows[arc]!;
      if (total === 0) return;
      for (let arc = firstArc; arc < endArc; arc++) {
        flows[arc] = (this.#asked[row]! * this.#startFlows[arc]!) / total;
      }
    });
    return flows;
  }

  #program(): LinearProgram {
    const rowLower = Float64Array.from(this.#rowLower);
    for (let row = 0; row < this.#asked.length; row++) {
      for (const { at, share } of this.#demandRows.minimaOf(row)) {
        rowLower[at]! -= this.#slack * share * this.#sizes[row]!;
      }
    }
    const program = this.#builder.finish(rowLower, Float64Array.from(this.#rowUpper));
    for (const [variable, value] of this.#fixed) {
      program.cost[variable] = 0;
      program.lower[variable] = value / program.units[variable]!;
      program.upper[variable] = value / program.units[variable]!;
    }
    return program;
  }

  #noteCarrying({ values }: LinearSolution): void {
    this.#carrying = new Uint8Array(this.#isOffered.length);
    this.#arcs.forEach((arc, variable) => {
      if (arc >= 0 && values[variable]! > 0) this.#carrying[arc] = 1;
    });
  }

  #offer(arc: number): void {
    const { rows, arcRow, arcColumn, arcWork } = this.#problem;
    this.#arcs.push(arc);
    this.#builder.add(0, Infinity, arcSize(this.#problem, this.#sizes, arc));
    this.#builder.entry(arcRow[arc]!, 1);
    this.#builder.entry(rows.length + arcColumn[arc]!, arcWork[arc]!);
    for (const at of this.#demandRows.ofBounds(arc)) this.#builder.entry(at, 1);
  }
}

interface DemandRow {
  readonly at: number;
  /** Of what is served. */
  readonly share: number;
}

/**
 * Rows of the program that depend on how much of a row is served: all its flows add up to at least that, and where an
 * operator bounds a weight, one flow is at least or at most a share of it.
 */
class DemandRows {
  /** Number of rows of the program. */
  readonly end: number;
  /** By row. */
  readonly #minima: DemandRow[][] = [];
  readonly #maxima: DemandRow[][] = [];
  readonly #ofBounds = new Map<number, number[]>();

  constructor({ rows, columns, arcMin, arcMax }: Problem) {
    let end = rows.length + columns.length;
    rows.forEach(({ firstArc, endArc, bounds }, row) => {
      const minima = [{ at: row, share: 1 }];
      const maxima: DemandRow[] = [];
      for (let arc = firstArc; arc < endArc && bounds.size > 0; arc++) {
        const own: number[] = [];
        if (arcMin[arc]! > 0) {
          minima.push({ at: end, share: arcMin[arc]! });
          own.push(end++);
        }
        if (arcMax[arc]! < 1) {
          maxima.push({ at: end, share: arcMax[arc]! });
          own.push(end++);
        }
        if (own.length > 0) this.#ofBounds.set(arc, own);
      }
      this.#minima.push(minima);
      this.#maxima.push(maxima);
    });
    this.end = end;
  }

  of(row: number): readonly DemandRow[] {
    return [...this.#minima[row]!, ...this.#maxima[row]!];
  }

  minimaOf(row: number): readonly DemandRow[] {
    return this.#minima[row]!;
  }

  /** By row of the program, @param sizes by row and column of the problem */
  sizes(sizes: Float64Array): Float64Array {
    const all = new Float64Array(this.end);
    all.set(sizes);
    for (let row = 0; row < this.#minima.length; row++)
      for (const { at } of this.of(row)) all[at] = sizes[row]!;
    return all;
  }

  /** Rows that bound the flow of an arc. */
  ofBounds(arc: number): readonly number[] {
    return this.#ofBounds.get(arc) ?? [];
  }

  /** @param asked by row of the problem, @param lower and upper by row of the program */
  setSides(asked: Float64Array, lower: Float64Array, upper: Float64Array): void {
    asked.forEach((flow, row) => {
      for (const { at, share } of this.#minima[row]!) lower[at] = share * flow;
      for (const { at, share } of this.#maxima[row]!) {
        lower[at] = -Infinity;
        upper[at] = share * flow;
      }
    });
  }
}

/** About the share of each row's demand that will be served: that of what its pool asks for for which its engines have room. */
function expectedShares({ rows, columns, arcColumn, arcWork }: Problem): Float64Array {
  const asked = new Map<string, number>();
  const room = new Float64Array(rows.length);
  rows.forEach(({ poolId, askedRps, firstArc, endArc }, row) => {
    let work = 0;
    for (let arc = firstArc; arc < endArc; arc++) {
      work += arcWork[arc]! / (endArc - firstArc);
      room[row]! += columns[arcColumn[arc]!]!.capacity;
    }
    asked.set(poolId, (asked.get(poolId) ?? 0) + work * askedRps);
  });
  return room.map((capacity, row) => {
    const work = asked.get(rows[row]!.poolId)!;
    return work > capacity && capacity > 0 ? capacity / work : 1;
  });
}
