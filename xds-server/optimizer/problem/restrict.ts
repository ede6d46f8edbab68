import type { ArcProblem, ArcRow, FlowProblem } from './flow-problem.js';

const NO_VALUES: Float64Array = new Float64Array();
const NO_INDICES: Int32Array = new Int32Array();
const NO_MARKS: Uint8Array = new Uint8Array();

/** A flow problem on some of the arcs. */
export interface Restriction {
  readonly flowProblem: ArcProblem;
  readonly picked: PickedArcs;
}

/** The same problem with the marked arcs only. All flow must lie on these. */
export function restrict(whole: FlowProblem, isKept: Uint8Array): Restriction {
  return restrictTo(whole, new PickedArcs(markedArcs(isKept)));
}

/** The same problem with more arcs. Most are there already, side by side, where they are read faster than from the whole. */
export function widen(whole: FlowProblem, narrow: Restriction, joining: readonly number[]): Restriction {
  return restrictTo(whole, narrow.picked.with(joining), narrow.flowProblem);
}

function restrictTo(whole: FlowProblem, picked: PickedArcs, narrow?: ArcProblem): Restriction {
  const { problem } = whole;
  const rows: ArcRow[] = [];
  let firstArc = 0;
  for (const { endArc: end, moveSeconds } of problem.rows) {
    let endArc = firstArc;
    while (endArc < picked.arcs.length && picked.arcs[endArc]! < end) endArc++;
    rows.push({ firstArc, endArc, moveSeconds });
    firstArc = endArc;
  }
  return {
    picked,
    flowProblem: {
      problem: {
        columns: problem.columns,
        rows,
        arcRow: picked.indices(problem.arcRow, narrow?.problem.arcRow),
        arcColumn: picked.indices(problem.arcColumn, narrow?.problem.arcColumn),
        arcCost: picked.values(problem.arcCost, narrow?.problem.arcCost),
        arcWork: picked.values(problem.arcWork, narrow?.problem.arcWork),
      },
      served: whole.served,
      lower: picked.values(whole.lower, narrow?.lower),
      upper: picked.values(whole.upper, narrow?.upper),
      kink: picked.values(whole.kink, narrow?.kink),
    },
  };
}

/** Some arcs of a whole, ascending, and where fewer arcs had been picked before, which of those they are. */
export class PickedArcs {
  /** Arc of the whole by arc picked. */
  readonly arcs: Int32Array;
  /** By arc picked: its index among the fewer, -1 for one that was not there. */
  readonly #before: Int32Array;

  constructor(arcs: Int32Array, before: Int32Array = new Int32Array(arcs.length).fill(-1)) {
    this.arcs = arcs;
    this.#before = before;
  }

  /** These arcs and more, which are none of these. */
  with(joining: readonly number[]): PickedArcs {
    const more = Int32Array.from(joining).sort();
    const size = this.arcs.length + more.length;
    const arcs = new Int32Array(size);
    const before = new Int32Array(size);
    let own = 0;
    for (let at = 0, next = 0; at < size; at++) {
      const isOwn = next === more.length || (own < this.arcs.length && this.arcs[own]! < more[next]!);
      before[at] = isOwn ? own : -1;
      arcs[at] = isOwn ? this.arcs[own++]! : more[next++]!;
    }
    return new PickedArcs(arcs, before);
  }

  /** Values of these arcs: those of the fewer before, of others those of the whole. */
  values(whole: Float64Array, fewer = NO_VALUES): Float64Array {
    const picked = new Float64Array(this.arcs.length);
    for (let at = 0; at < picked.length; at++) {
      const before = this.#before[at]!;
      picked[at] = before < 0 ? whole[this.arcs[at]!]! : fewer[before]!;
    }
    return picked;
  }

  /** The same for indices. */
  indices(whole: Int32Array, fewer = NO_INDICES): Int32Array {
    const picked = new Int32Array(this.arcs.length);
    for (let at = 0; at < picked.length; at++) {
      const before = this.#before[at]!;
      picked[at] = before < 0 ? whole[this.arcs[at]!]! : fewer[before]!;
    }
    return picked;
  }

  /** The same for marks. */
  marks(whole: Uint8Array, fewer = NO_MARKS): Uint8Array {
    const picked = new Uint8Array(this.arcs.length);
    for (let at = 0; at < picked.length; at++) {
      const before = this.#before[at]!;
      picked[at] = before < 0 ? whole[this.arcs[at]!]! : fewer[before]!;
    }
    return picked;
  }
}

/** Indices of the arcs marked with 1, ascending. Most are not, so whole words of marks are looked at. */
export function markedArcs(isKept: Uint8Array): Int32Array {
  const words = new Int32Array(isKept.buffer, isKept.byteOffset, isKept.length >> 2);
  let size = 0;
  // The bytes of a word, 0 or 1, add up in its highest byte.
  for (let word = 0; word < words.length; word++) size += Math.imul(words[word]!, 0x01010101) >>> 24;
  for (let arc = 4 * words.length; arc < isKept.length; arc++) size += isKept[arc]!;
  const arcs = new Int32Array(size);
  let at = 0;
  for (let word = 0; word < words.length; word++) {
    if (words[word] === 0) continue;
    for (let arc = 4 * word; arc < 4 * word + 4; arc++) if (isKept[arc]) arcs[at++] = arc;
  }
  for (let arc = 4 * words.length; arc < isKept.length; arc++) if (isKept[arc]) arcs[at++] = arc;
  return arcs;
}
