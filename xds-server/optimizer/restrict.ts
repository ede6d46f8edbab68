import type { ArcProblem, ArcRow, FlowProblem } from './flow-problem.js';

/** A flow problem on some of the arcs. */
export interface Restriction {
  readonly flowProblem: ArcProblem;
  /** Arc of the whole problem by arc of this one. */
  readonly arcs: Int32Array;
}

/** The same problem with the marked arcs only. All flow must lie on these. */
export function restrict(whole: FlowProblem, isKept: Uint8Array): Restriction {
  const { problem } = whole;
  const arcs = markedArcs(isKept);
  const rows: ArcRow[] = [];
  let firstArc = 0;
  for (const { endArc: end, moveSeconds } of problem.rows) {
    let endArc = firstArc;
    while (endArc < arcs.length && arcs[endArc]! < end) endArc++;
    rows.push({ firstArc, endArc, moveSeconds });
    firstArc = endArc;
  }
  return {
    arcs,
    flowProblem: {
      problem: {
        columns: problem.columns,
        rows,
        arcRow: pickIndices(problem.arcRow, arcs),
        arcColumn: pickIndices(problem.arcColumn, arcs),
        arcCost: pick(problem.arcCost, arcs),
        arcWork: pick(problem.arcWork, arcs),
      },
      served: whole.served,
      lower: pick(whole.lower, arcs),
      upper: pick(whole.upper, arcs),
      kink: pick(whole.kink, arcs),
    },
  };
}

/** Indices of the arcs marked with 1, ascending. Most are not, so whole words of marks are looked at. */
export function markedArcs(isKept: Uint8Array): Int32Array {
  const words = new Int32Array(isKept.buffer, isKept.byteOffset, isKept.length >> 2);
  let size = 0;
  for (let arc = 0; arc < isKept.length; arc++) size += isKept[arc]!;
  const arcs = new Int32Array(size);
  let at = 0;
  for (let word = 0; word < words.length; word++) {
    if (words[word] === 0) continue;
    for (let arc = 4 * word; arc < 4 * word + 4; arc++) if (isKept[arc]) arcs[at++] = arc;
  }
  for (let arc = 4 * words.length; arc < isKept.length; arc++) if (isKept[arc]) arcs[at++] = arc;
  return arcs;
}

/** The values at these arcs. */
export function pick(values: Float64Array, arcs: Int32Array): Float64Array {
  const picked = new Float64Array(arcs.length);
  for (let at = 0; at < arcs.length; at++) picked[at] = values[arcs[at]!]!;
  return picked;
}

/** The same for indices. */
function pickIndices(values: Int32Array, arcs: Int32Array): Int32Array {
  const picked = new Int32Array(arcs.length);
  for (let at = 0; at < arcs.length; at++) picked[at] = values[arcs[at]!]!;
  return picked;
}

/** The same for marks. */
export function pickMarks(values: Uint8Array, arcs: Int32Array): Uint8Array {
  const picked = new Uint8Array(arcs.length);
  for (let at = 0; at < arcs.length; at++) picked[at] = values[arcs[at]!]!;
  return picked;
}
