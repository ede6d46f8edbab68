import type { FlowProblem } from './flow-problem.js';

/** A flow problem on some of the arcs. */
export interface Restriction {
  readonly flowProblem: FlowProblem;
  /** Arc of the whole problem by arc of this one. */
  readonly arcs: Int32Array;
}

/** The same problem with the marked arcs only. All flow must lie on these. */
export function restrict(whole: FlowProblem, isKept: Uint8Array): Restriction {
  const { problem } = whole;
  const arcs = markedArcs(isKept);
  let at = 0;
  const rows = problem.rows.map((row) => {
    const firstArc = at;
    while (at < arcs.length && arcs[at]! < row.endArc) at++;
    return { ...row, firstArc, endArc: at };
  });
  return {
    arcs,
    flowProblem: {
      problem: {
        ...problem,
        rows,
        arcRow: pick(problem.arcRow, arcs),
        arcColumn: pick(problem.arcColumn, arcs),
        arcCost: pick(problem.arcCost, arcs),
        arcWork: pick(problem.arcWork, arcs),
        arcPrevious: pick(problem.arcPrevious, arcs),
        arcMin: pick(problem.arcMin, arcs),
        arcMax: pick(problem.arcMax, arcs),
      },
      served: whole.served,
      lower: pick(whole.lower, arcs),
      upper: pick(whole.upper, arcs),
      kink: pick(whole.kink, arcs),
    },
  };
}

/** Indices of the marked arcs, ascending. */
export function markedArcs(isKept: Uint8Array): Int32Array {
  const arcs = new Int32Array(isKept.length);
  let size = 0;
  for (let arc = 0; arc < isKept.length; arc++) {
    if (isKept[arc]) arcs[size++] = arc;
  }
  return arcs.slice(0, size);
}

/** The values at these arcs, in a new array of the same kind. */
export function pick<T extends Float64Array | Int32Array | Uint8Array>(values: T, arcs: Int32Array): T {
  const picked = values.slice(0, arcs.length) as T;
  for (let at = 0; at < arcs.length; at++) picked[at] = values[arcs[at]!]!;
  return picked;
}
