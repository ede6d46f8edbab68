/**
 * Robust regression with few coefficients: minimises `sum huber(row . coefficients - target)` over coefficients >= 0,
 * by iteratively reweighted least squares. Residuals are relative ones here (callers divide by what was measured), so
 * that a stage at 30 ms counts as much as one at 300 ms.
 */
export interface Equation {
  readonly row: readonly number[];
  readonly target: number;
}

/** Relative residuals up to this one count quadratically, larger ones linearly: ordinary scatter between stages. */
const huberThreshold = 0.05;
/** Converges in a few dozen rounds on data that fit at all; data that do not need hundreds. */
const maxIterations = 500;

export function fitNonNegative(equations: readonly Equation[]): number[] {
  let weights = equations.map(() => 1);
  let coefficients = weightedNonNegative(equations, weights);
  for (let iteration = 0; iteration < maxIterations; iteration += 1) {
    weights = equations.map((equation) => huberWeight(residual(equation, coefficients)));
    const next = weightedNonNegative(equations, weights);
    const change = Math.max(...next.map((value, index) => Math.abs(value - coefficients[index]!)));
    const scale = Math.max(...next, Number.MIN_VALUE);
    coefficients = next;
    if (change <= 1e-12 * scale) break;
  }
  return coefficients;
}

function huberWeight(value: number): number {
  return Math.min(1, huberThreshold / Math.abs(value));
}

function residual({ row, target }: Equation, coefficients: readonly number[]): number {
  return row.reduce((sum, value, index) => sum + value * coefficients[index]!, -target);
}

/**
 * Exact: the optimum under non-negativity is the unconstrained optimum over some set of coefficients with the others
 * at 0, and with three coefficients at most there are seven sets.
 */
function weightedNonNegative(equations: readonly Equation[], weights: readonly number[]): number[] {
  const size = equations[0]!.row.length;
  let best = new Array<number>(size).fill(0);
  let bestLoss = loss(equations, weights, best);
  for (let set = 1; set < 2 ** size; set += 1) {
    const free = [...Array(size).keys()].filter((index) => (set >> index) % 2 === 1);
    const solution = solveNormalEquations(equations, weights, free);
    if (solution === undefined || solution.some((value) => value < 0)) continue;
    const candidate = new Array<number>(size).fill(0);
    free.forEach((index, position) => {
      candidate[index] = solution[position]!;
    });
    const candidateLoss = loss(equations, weights, candidate);
    if (candidateLoss < bestLoss) {
      best = candidate;
      bestLoss = candidateLoss;
    }
  }
  return best;
}

function loss(equations: readonly Equation[], weights: readonly number[], coefficients: readonly number[]) {
  return equations.reduce((sum, equation, i) => sum + weights[i]! * residual(equation, coefficients) ** 2, 0);
}

/** Least squares over the columns `free`; undefined when these columns cannot be told apart. */
function solveNormalEquations(
  equations: readonly Equation[],
  weights: readonly number[],
  free: readonly number[],
): number[] | undefined {
  // Columns are scaled to length 1: tokens, seconds and constants differ by many orders of magnitude.
  const scales = free.map((column) => Math.hypot(...equations.map(({ row }) => row[column]!)));
  if (scales.some((scale) => scale === 0)) return undefined;
  const matrix = free.map((a, i) => [
    ...free.map((b, j) => dot(equations, weights, (row) => (row[a]! / scales[i]!) * (row[b]! / scales[j]!))),
    dot(equations, weights, (row, target) => (row[a]! / scales[i]!) * target),
  ]);
  return gauss(matrix)?.map((value, i) => value / scales[i]!);
}

function dot(
  equations: readonly Equation[],
  weights: readonly number[],
  term: (row: readonly number[], target: number) => number,
): number {
  return equations.reduce((sum, { row, target }, index) => sum + weights[index]! * term(row, target), 0);
}

/** Gaussian elimination with pivoting on an augmented matrix; undefined when it is singular. */
function gauss(matrix: number[][]): number[] | undefined {
  const size = matrix.length;
  for (let column = 0; column < size; column += 1) {
    let pivot = column;
    for (let row = column + 1; row < size; row += 1) {
      if (Math.abs(matrix[row]![column]!) > Math.abs(matrix[pivot]![column]!)) pivot = row;
    }
    const pivotRow = matrix[pivot]!;
    if (Math.abs(pivotRow[column]!) < 1e-10) return undefined;
    matrix[pivot] = matrix[column]!;
    matrix[column] = pivotRow;
    for (let row = 0; row < size; row += 1) {
      if (row === column) continue;
      const factor = matrix[row]![column]! / pivotRow[column]!;
      for (let k = column; k <= size; k += 1) matrix[row]![k]! -= factor * pivotRow[k]!;
    }
  }
  return matrix.map((row, index) => row[size]! / row[index]!);
}
