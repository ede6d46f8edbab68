import type { ArcProblem } from '../problem/flow-problem.js';
import { type ArcFlows, FIXED } from './arc-flows.js';
import { costTolerance, type NodePrices } from './node-prices.js';

/** Rows take part in a pass when they gain at least this share of what the best one does. */
const GAIN_SHARE = 0.5;
/** Rows that gain at least this share of what the best one does are looked at again before all others are. */
const CANDIDATE_SHARE = 0.1;
/** What a row gains by a shift must be this many times as much as rounding of both prices may feign. */
const NOISE_MARGIN = 4;
/** What is taken to be gained before anybody has looked, in seconds: trees that are at their optimum may stay there. */
const FIRST_GAIN = 1e-3;

/** What rows gain by shifts of flow between two of their arcs. */
export class RowGains {
  readonly #flowProblem: ArcProblem;
  readonly #arcs: ArcFlows;
  readonly #prices: NodePrices;
  readonly #rows: number;
  /** By row, as looked at last: what it gains per request by its best shift, from which arc to which. */
  readonly #gain: Float64Array;
  readonly #giver: Int32Array;
  readonly #taker: Int32Array;
  readonly #allRows: Int32Array;
  /** Room for `#candidates`. */
  readonly #listed: Int32Array;
  /** Rows that gained much when all were looked at last, and what the best one gained then. */
  #candidates: Int32Array = new Int32Array();
  #mostGain = FIRST_GAIN;

  constructor(flowProblem: ArcProblem, arcs: ArcFlows, prices: NodePrices) {
    this.#flowProblem = flowProblem;
    this.#arcs = arcs;
    this.#prices = prices;
    this.#rows = flowProblem.problem.rows.length;
    this.#gain = new Float64Array(this.#rows);
    this.#giver = new Int32Array(this.#rows);
    this.#taker = new Int32Array(this.#rows);
    this.#allRows = new Int32Array(this.#rows);
    for (let row = 0; row < this.#rows; row++) this.#allRows[row] = row;
    this.#listed = new Int32Array(this.#rows);
  }

  /** Seconds per request that the best row gained when all were looked at last. */
  get most(): number {
    return this.#mostGain;
  }

  /** Until all rows are looked at again nothing counts as gained, so that no tree is near enough its optimum. */
  expectNone(): void {
    this.#mostGain = 0;
  }

  /**
   * Frees the cheapest arc that can take more and the dearest that can give, in the rows that gain most by a shift
   * between them. Rows that gain less wait: often the others' shifts leave them nothing to gain.
   */
  gainfulArcs(): number[] {
    const { sides } = this.#arcs;
    const gainful: number[] = [];
    const { rows, most } = this.#rowsThatGain();
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!;
      if (this.#gain[row] === 0 || this.#gain[row]! < GAIN_SHARE * most) continue;
      const taker = this.#taker[row]!;
      const giver = this.#giver[row]!;
      if (sides[taker] === FIXED) {
        sides[taker] = this.#arcs.sideUp(taker);
        gainful.push(taker);
      }
      if (sides[giver] === FIXED) {
        sides[giver] = this.#arcs.sideDown(giver);
        gainful.push(giver);
      }
    }
    return gainful;
  }

  /**
   * Rows among which those are that gain most, and what the best one gains. While one of the rows that gained much when
   * all were looked at last still gains half of the best one then, the others wait.
   */
  #rowsThatGain(): { readonly rows: Int32Array; readonly most: number } {
    const most = this.#lookAt(this.#candidates);
    if (most >= GAIN_SHARE * this.#mostGain && most > 0) return { rows: this.#candidates, most };
    this.#mostGain = this.#lookAt(this.#allRows);
    const least = CANDIDATE_SHARE * this.#mostGain;
    let size = 0;
    for (let row = 0; row < this.#rows; row++) {
      if (this.#gain[row]! > 0 && this.#gain[row]! >= least) this.#listed[size++] = row;
    }
    this.#candidates = this.#listed.subarray(0, size);
    return { rows: this.#candidates, most: this.#mostGain };
  }

  /**
   * Finds the best shift of each of these rows, and returns what the best one gains. A solve spends much of its time
   * here, so the sides of arcs and their costs are written out.
   */
  #lookAt(rows: Int32Array): number {
    const { lower, kink, upper, problem } = this.#flowProblem;
    const { arcCost, arcWork, arcColumn } = problem;
    const { flows, tolerance } = this.#arcs;
    const { price, noise: nodeNoise } = this.#prices;
    const columns = this.#rows;
    let most = 0;
    for (let at = 0; at < rows.length; at++) {
      const row = rows[at]!;
      const { firstArc, endArc, moveSeconds } = problem.rows[row]!;
      let cheapest = Infinity;
      let dearest = -Infinity;
      let taker = -1;
      let giver = -1;
      for (let arc = firstArc; arc < endArc; arc++) {
        const cost = arcCost[arc]! + arcWork[arc]! * price[columns + arcColumn[arc]!]!;
        const more = flows[arc]! + tolerance;
        const less = flows[arc]! - tolerance;
        // Most arcs carry nothing, and are too dear to change that.
        if (less <= lower[arc]! && cost - moveSeconds >= cheapest) continue;
        if (more < upper[arc]!) {
          const up = more < kink[arc]! ? cost - moveSeconds : cost;
          if (up < cheapest) {
            cheapest = up;
            taker = arc;
          }
        }
        if (less > lower[arc]!) {
          const down = less > kink[arc]! ? cost : cost - moveSeconds;
          if (down > dearest) {
            dearest = down;
            giver = arc;
          }
        }
      }
      let gain = dearest - cheapest;
      const least = costTolerance(dearest);
      if (!(gain > least)) {
        gain = 0;
      } else {
        const noise = nodeNoise[columns + arcColumn[taker]!]! + nodeNoise[columns + arcColumn[giver]!]!;
        if (!(gain > least + NOISE_MARGIN * noise)) gain = 0;
      }
      this.#gain[row] = gain;
      this.#taker[row] = taker;
      this.#giver[row] = giver;
      if (gain > most) most = gain;
    }
    return most;
  }
}
