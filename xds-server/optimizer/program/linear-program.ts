import type { Highs, Model } from 'highs';
import { WardropError } from '../../errors.js';

/** `minimise cost x` subject to `rowLower <= A x <= rowUpper` and `lower <= x <= upper`; A by columns. */
export interface LinearProgram {
  readonly cost: Float64Array;
  readonly lower: Float64Array;
  readonly upper: Float64Array;
  readonly rowLower: Float64Array;
  readonly rowUpper: Float64Array;
  readonly starts: Int32Array;
  readonly indices: Int32Array;
  readonly values: Float64Array;
  /** One of each variable, and of each row, in what its maker counts in; powers of two, so that dividing by them is exact. */
  readonly units: Float64Array;
  readonly rowUnits: Float64Array;
}

/** Which variables and rows are at a bound, and at which. As many as there are rows are at none. */
export interface Basis {
  readonly colStatus: Int32Array;
  readonly rowStatus: Int32Array;
}

/** How to run a program; default is from nothing. */
export interface RunOptions {
  /** Start from the last run's optimal basis, which needs its matrix or one with columns added. */
  readonly resume?: boolean;
  /** Start from this basis. */
  readonly basis?: Basis;
  /** Pivot where the solution stays feasible: best with few new columns. */
  readonly isPrimal?: boolean;
}

/** In what the program's maker counts in. */
export interface LinearSolution {
  readonly objective: number;
  readonly values: Float64Array;
  /** By row: change of the objective per unit of right-hand side. */
  readonly rowDuals: Float64Array;
  /** Whether a variable is in the basis, so that its value may move without another's leaving a bound. */
  readonly isBasic: (variable: number) => boolean;
}

/** Statuses in a basis: at a bound, or of a value that follows from the others'. */
export const AT_LOWER = 0;
export const BASIC = 1;
export const AT_UPPER = 2;

const OPTIMAL = 7;
const TIME_LIMIT = 13;
const UNKNOWN = 15;

/** Where sizes differ by more than this, the least and the largest count as less far apart: HiGHS takes 1e-9 for nothing. */
const MOST_DOUBLINGS = 30;

/** Values of the option `simplex_strategy`. */
const DUAL_SIMPLEX = 1;
const PRIMAL_SIMPLEX = 4;

/**
 * HiGHS with one model that lives as long as the solver. A program with the same matrix as the last one, or with
 * columns added to it, only changes bounds and costs and adds the columns. Unless told to resume, a run starts with the solver's memory of earlier ones wiped, so that the
 * result is a function of the program alone; a chain of resumed runs is one of their programs.
 */
export class LinearSolver {
  readonly #highs: Highs;
  readonly #model: Model;
  #loaded: LinearProgram | undefined;

  constructor(highs: Highs) {
    this.#highs = highs;
    this.#model = highs.createModel();
    this.#model.options.set({ output_flag: false });
  }

  /** Wasm memory in use; it never shrinks and ends at 2 GiB. */
  get memoryBytes(): number {
    return this.#highs.memoryBytes;
  }

  /** Starts a period in which all runs together may take this long. HiGHS adds up its run times until told to stop. */
  startDeadline(seconds: number): void {
    this.#model.zeroAllClocks();
    this.#model.options.set('time_limit', seconds);
  }

  /**
   * @throws WardropError unless HiGHS proves optimality; anything else it returns may be nonsense.
   */
  solve(
    program: LinearProgram,
    { resume = false, basis, isPrimal = false }: RunOptions = {},
  ): LinearSolution {
    this.#load(program);
    if (!resume) this.#model.clearSolver();
    if (basis) this.#model.setBasis(basis);
    let modelStatus = isPrimal ? this.#runPrimal() : this.#run();
    // Where costs are in the millions, as at a hard limit, the dual simplex can end a little beside its tolerance.
    if (modelStatus === UNKNOWN) {
      this.#model.clearSolver();
      modelStatus = this.#runPrimal();
    }
    if (modelStatus === TIME_LIMIT) {
      throw new WardropError(
        'WARDROP_SOLVER_TIMEOUT',
        'the linear program was not solved before the deadline',
      );
    }
    if (modelStatus !== OPTIMAL) {
      throw new WardropError('WARDROP_SOLVER_FAILED', `HiGHS ended with model status ${modelStatus}`);
    }
    const { colValue, rowDual } = this.#model.getSolution();
    const { colStatus } = this.#model.getBasis();
    return {
      objective: this.#model.getObjectiveValue(),
      values: colValue.map((value, variable) => value * program.units[variable]!),
      rowDuals: rowDual.map((dual, row) => dual / program.rowUnits[row]!),
      isBasic: (variable) => colStatus[variable] === BASIC,
    };
  }

  dispose(): void {
    this.#model.dispose();
  }

  #runPrimal(): ReturnType<Model['run']>['modelStatus'] {
    const model = this.#model;
    model.options.set('simplex_strategy', PRIMAL_SIMPLEX);
    const modelStatus = this.#run();
    model.options.set('simplex_strategy', DUAL_SIMPLEX);
    return modelStatus;
  }

  /** Where numbers lie too far apart, HiGHS may lose its way and break off with an error. */
  #run(): ReturnType<Model['run']>['modelStatus'] {
    try {
      return this.#model.run().modelStatus;
    } catch {
      return UNKNOWN;
    }
  }

  #load(program: LinearProgram): void {
    const { cost, lower, upper, rowLower, rowUpper } = program;
    const loaded = this.#loaded;
    if (loaded && extendsMatrix(loaded, program)) {
      if (cost.length > loaded.cost.length) this.#model.addCols(columnsFrom(program, loaded.cost.length));
      const columns = { kind: 'range', from: 0, to: cost.length - 1 } as const;
      const rows = { kind: 'range', from: 0, to: rowLower.length - 1 } as const;
      this.#model.changeColsCost(columns, cost);
      this.#model.changeColsBounds(columns, lower, upper);
      this.#model.changeRowsBounds(rows, rowLower, rowUpper);
    } else {
      const numCols = cost.length;
      const numRows = rowLower.length;
      const matrix = matrixFrom(program, 0);
      this.#model.passModel({
        numCols,
        numRows,
        colCost: cost,
        colLower: lower,
        colUpper: upper,
        rowLower,
        rowUpper,
        matrix,
      });
    }
    this.#loaded = program;
  }
}

/** Whether a program has the rows and columns of another one, and perhaps more columns after them. */
function extendsMatrix(start: LinearProgram, program: LinearProgram): boolean {
  return (
    start.rowLower.length === program.rowLower.length &&
    start.cost.length <= program.cost.length &&
    startsWith(program.starts, start.starts) &&
    startsWith(program.indices, start.indices) &&
    startsWith(program.values, start.values)
  );
}

function startsWith(whole: ArrayLike<number>, start: ArrayLike<number>): boolean {
  for (let at = 0; at < start.length; at++) if (whole[at] !== start[at]) return false;
  return true;
}

function columnsFrom(program: LinearProgram, first: number): Parameters<Model['addCols']>[0] {
  return {
    cost: program.cost.slice(first),
    lower: program.lower.slice(first),
    upper: program.upper.slice(first),
    matrix: matrixFrom(program, first),
  };
}

function matrixFrom({ cost, rowLower, starts, indices, values }: LinearProgram, first: number) {
  const from = starts[first]!;
  return {
    format: 'csc',
    numRows: rowLower.length,
    numCols: cost.length - first,
    starts: starts.slice(first).map((start) => start - from),
    indices: indices.slice(from),
    values: values.slice(from),
  } as const;
}

/**
 * Collects a linear program variable by variable. HiGHS is content when rows and bounds are kept to 1e-7, whatever they are
 * about. So that this is little of each engine and row, however small it is beside others, both have units of their own.
 */
export class ProgramBuilder {
  readonly #rowUnits: Float64Array;
  readonly #cost: number[] = [];
  readonly #lower: number[] = [];
  readonly #upper: number[] = [];
  readonly #starts: number[] = [];
  readonly #indices: number[] = [];
  readonly #values: number[] = [];
  readonly #units: number[] = [];

  /** @param rowUnits of which size each row is */
  constructor(rowUnits: Float64Array) {
    this.#rowUnits = rowUnits.map(nearestPower);
  }

  /** Number of variables so far, which is the index of the next one. */
  get size(): number {
    return this.#cost.length;
  }

  /** Starts a variable in `lower..upper`, of this size; its entries follow. */
  add(cost: number, upper: number, size = 1, lower = 0): void {
    const unit = nearestPower(size);
    this.#cost.push(cost * unit);
    this.#lower.push(lower / unit);
    this.#upper.push(upper / unit);
    this.#starts.push(this.#indices.length);
    this.#units.push(unit);
  }

  /** Coefficient of the variable at hand in one row. */
  entry(row: number, value: number): void {
    this.#indices.push(row);
    this.#values.push((value * this.#units.at(-1)!) / this.#rowUnits[row]!);
  }

  finish(rowLower: Float64Array, rowUpper: Float64Array): LinearProgram {
    const rowUnits = this.#rowUnits;
    return {
      cost: Float64Array.from(this.#cost),
      lower: Float64Array.from(this.#lower),
      upper: Float64Array.from(this.#upper),
      rowLower: rowLower.map((side, row) => side / rowUnits[row]!),
      rowUpper: rowUpper.map((side, row) => side / rowUnits[row]!),
      starts: Int32Array.from([...this.#starts, this.#indices.length]),
      indices: Int32Array.from(this.#indices),
      values: Float64Array.from(this.#values),
      units: Float64Array.from(this.#units),
      rowUnits,
    };
  }
}

function nearestPower(size: number): number {
  if (!(size > 0)) return 1;
  return 2 ** Math.min(Math.max(Math.round(Math.log2(size)), -MOST_DOUBLINGS), MOST_DOUBLINGS);
}
