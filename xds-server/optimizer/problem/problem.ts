import { groupBy } from '../../collections.js';
import { type Demand, settledSecondsOf } from '../../fleet/fleet-state.js';
import type { WeightBound } from '../../fleet/policy.js';
import { type RowName, rowKey } from '../../fleet/row-key.js';
import { idleTbotSeconds, idleTtftSeconds } from '../../profiles/curves.js';
import type { Profile, TokenMix } from '../../profiles/profile.js';
import { workSeconds } from '../../profiles/profile.js';
import type { SolverInput } from '../solution.js';
import { followable, type RowBounds } from './bounds.js';
import { buildColumns, type Column } from './columns.js';
import { type MeanRequest, meanMix, poolOf, totalOf, totalRps } from './demand.js';

/** Horizon of move costs while conditions are new, in seconds. */
const SHORTEST_HORIZON_SECONDS = 60;
/** Horizon of move costs when conditions have held for long, in seconds. */
const LONGEST_HORIZON_SECONDS = 30 * 60;
/** Seconds that moving one request per second costs at least: no flow moves for less than a microsecond. */
const LEAST_MOVE_SECONDS = 1e-6;

/**
 * A class asks for this many times what all engines of its row can do, at most. What is beyond is refused without a question: shares
 * of next to nothing get lost in rounding, and with them what others are served.
 */
const MOST_ASKED = 1e4;
/** Share of a class that filters, which shed by 32 bits of a hash, can tell from nothing: where engines could not do that much, none is asked for. */
const LEAST_SERVED = 5e-9;

/**
 * Seconds that tell equal choices apart, at most: which frontend takes which of two engines when it makes no difference.
 * Each arc has its own part of it by the ids at its ends. The linear program of a first placement obeys it; it is less
 * than any later shift of flow has to gain.
 */
const TIE_SECONDS = 5e-8;

/** A (frontend, pool): the requests that share one row of weights. */
export interface Row {
  readonly frontendId: string;
  readonly poolId: string;
  readonly demandRps: number;
  /** Highest priority first. */
  readonly classes: readonly Demand[];
  /** Requests per second that there is any question of serving, by class and together. */
  readonly asked: readonly number[];
  readonly askedRps: number;
  /** Mean request over the classes. */
  readonly mix: TokenMix;
  /** User-seconds per second that one request per second of moved flow costs. */
  readonly moveSeconds: number;
  /** Arcs of the row: `firstArc <= arc < endArc`. */
  readonly firstArc: number;
  readonly endArc: number;
  readonly bounds: RowBounds;
}

/** Rows and columns joined by arcs: a row has an arc to each column that may and can serve it. */
export interface Problem {
  /** Sorted by frontend, then pool. */
  readonly rows: readonly Row[];
  readonly columns: readonly Column[];
  readonly arcRow: Int32Array;
  readonly arcColumn: Int32Array;
  /**
   * Seconds one request takes without load: network, first token, later tokens, egress where it is priced, and less than
   * a microsecond that breaks ties.
   */
  readonly arcCost: Float64Array;
  /** Replica-seconds one request costs. */
  readonly arcWork: Float64Array;
  /** Weight in force, 0 before the first plan. */
  readonly arcPrevious: Float64Array;
  /** Operator's bounds on the weight; 0 and 1 without any. */
  readonly arcMin: Float64Array;
  readonly arcMax: Float64Array;
  readonly warnings: readonly string[];
}

/**
 * Arranges checked input as rows, columns and arcs.
 * `servedRps` (same order as `state.demands`) weighs the classes of a row in its mean request; offered rates without it.
 */
export function buildProblem(input: SolverInput, servedRps?: readonly number[]): Problem {
  return new ProblemBuilder(input, servedRps).build();
}

/** Horizon of move costs. It doubles as time goes by, so that it changes five times and then stands still. */
function horizonSeconds(settledSeconds: number): number {
  let horizon = SHORTEST_HORIZON_SECONDS;
  while (horizon * 2 <= settledSeconds && horizon < LONGEST_HORIZON_SECONDS) horizon *= 2;
  return Math.min(horizon, LONGEST_HORIZON_SECONDS);
}

class ProblemBuilder {
  readonly #input: SolverInput;
  readonly #demands: ReadonlyMap<string, ClassesOfRow>;
  /** For rows without traffic of their own, so that their weights fit what may come. */
  readonly #poolMeans: ReadonlyMap<string, MeanRequest>;
  readonly #previous: ReadonlyMap<string, ReadonlyMap<string, number>>;
  readonly #bounds: ReadonlyMap<string, readonly WeightBound[]>;
  readonly #columns: readonly Column[];
  readonly #columnOf = new Map<string, number>();
  /** What an arc takes from its column, by column: first member, latency factor, hash, and index in `#kinds`. */
  readonly #firstMembers: Int32Array;
  readonly #latencyFactors: Float64Array;
  readonly #columnHashes: Int32Array;
  readonly #columnKinds: Int32Array;
  /** Profiles of all columns. */
  readonly #kinds: readonly Profile[];
  readonly #prefills = new Map<readonly number[], Prefill>();
  readonly #rows: Row[] = [];
  readonly #warnings: string[] = [];

  constructor(input: SolverInput, servedRps: readonly number[] | undefined) {
    this.#input = input;
    this.#demands = classesByRow(input.state.demands, servedRps);
    this.#poolMeans = meansByPool(input);
    const previous = new Map<string, ReadonlyMap<string, number>>();
    for (const row of input.previousWeights) previous.set(rowKey(row), row.weights);
    this.#previous = previous;
    this.#bounds = groupBy(input.policy.bounds, rowKey);
    this.#columns = buildColumns(input);
    const size = this.#columns.length;
    this.#firstMembers = new Int32Array(size);
    this.#latencyFactors = new Float64Array(size);
    this.#columnHashes = new Int32Array(size);
    this.#columnKinds = new Int32Array(size);
    const kinds = new Map<Profile, number>();
    for (let at = 0; at < size; at++) {
      const { members, latencyFactor, profile } = this.#columns[at]!;
      for (const member of members) this.#columnOf.set(this.#idOf(member), at);
      this.#firstMembers[at] = members[0]!;
      this.#latencyFactors[at] = latencyFactor;
      this.#columnHashes[at] = hashOf(this.#idOf(members[0]!));
      if (!kinds.has(profile)) kinds.set(profile, kinds.size);
      this.#columnKinds[at] = kinds.get(profile)!;
    }
    this.#kinds = [...kinds.keys()];
  }

  build(): Problem {
    const { frontends, pools } = this.#input.state.fleet;
    const eligible: number[][] = [];
    let most = 0;
    for (const { engineIds } of pools) {
      const columns = this.#eligibleColumns(engineIds);
      eligible.push(columns);
      most += frontends.length * columns.length;
    }
    const arcs = new ArcList(most);
    for (let frontend = 0; frontend < frontends.length; frontend++) {
      for (let pool = 0; pool < pools.length; pool++) {
        const names = { frontendId: frontends[frontend]!.id, poolId: pools[pool]!.id };
        this.#addRow(arcs, frontend, names, eligible[pool]!);
      }
    }
    return arcs.problem(this.#rows, this.#columns, this.#warnings);
  }

  #eligibleColumns(engineIds: readonly string[]): number[] {
    const isEligible = new Uint8Array(this.#columns.length);
    for (const id of engineIds) {
      const column = this.#columnOf.get(id);
      if (column !== undefined) isEligible[column] = 1;
    }
    const eligible: number[] = [];
    for (let column = 0; column < isEligible.length; column++) if (isEligible[column]) eligible.push(column);
    return eligible;
  }

  #addRow(arcs: ArcList, frontend: number, names: RowName, eligible: readonly number[]): void {
    const reachable = this.#reachable(frontend, eligible);
    const key = rowKey(names);
    const { classes, mean } = this.#demands.get(key) ?? {
      classes: [],
      mean: this.#poolMeans.get(names.poolId)!,
    };
    const firstArc = arcs.size;
    const rowHash = hashOf(key);
    this.#addArcs(arcs, frontend, reachable, mean, rowHash);
    this.#noteWeightsInForce(arcs, key, firstArc);
    const asked = askedRates(classes, this.#mostRps(arcs, firstArc));
    this.#rows.push({
      frontendId: names.frontendId,
      poolId: names.poolId,
      demandRps: totalRps(classes),
      classes,
      asked,
      askedRps: totalOf(asked),
      mix: mean,
      moveSeconds: this.#moveSeconds(names.poolId, mean, reachable),
      firstArc,
      endArc: arcs.size,
      bounds: this.#noteBounds(arcs, key, firstArc, reachable),
    });
  }

  /** The very list when all can be reached: what follows from it is then worked out once. */
  #reachable(frontend: number, eligible: readonly number[]): readonly number[] {
    const network = this.#input.state.fleet.networkSeconds[frontend]!;
    for (const at of eligible) {
      if (network[this.#firstMembers[at]!]! < Infinity) continue;
      return eligible.filter((each) => network[this.#firstMembers[each]!]! < Infinity);
    }
    return eligible;
  }

  #addArcs(
    arcs: ArcList,
    frontend: number,
    reachable: readonly number[],
    mean: MeanRequest,
    rowHash: number,
  ): void {
    const { fleet } = this.#input.state;
    const network = fleet.networkSeconds[frontend]!;
    const dollars = fleet.egressDollarsPerRequest?.[frontend];
    const { egressSecondsPerDollar } = this.#input.policy;
    const idleSeconds = new Float64Array(this.#kinds.length);
    const workOfKind = new Float64Array(this.#kinds.length);
    for (let kind = 0; kind < this.#kinds.length; kind++) {
      const profile = this.#kinds[kind]!;
      idleSeconds[kind] =
        idleTtftSeconds(profile, mean.uncachedPromptTokens) +
        (mean.outputTokens - 1) * idleTbotSeconds(profile);
      workOfKind[kind] = workSeconds(profile, mean);
    }
    const row = this.#rows.length;
    for (let index = 0; index < reachable.length; index++) {
      const at = reachable[index]!;
      const engine = this.#firstMembers[at]!;
      const kind = this.#columnKinds[at]!;
      const egress = dollars ? egressSecondsPerDollar * dollars[engine]! : 0;
      const tie = TIE_SECONDS * fractionOf(rowHash, this.#columnHashes[at]!);
      const arc = arcs.size + index;
      arcs.row[arc] = row;
      arcs.column[arc] = at;
      arcs.cost[arc] = network[engine]! + this.#latencyFactors[at]! * idleSeconds[kind]! + egress + tie;
      arcs.work[arc] = workOfKind[kind]!;
    }
    arcs.size += reachable.length;
  }

  /** Requests per second that all engines of the row that is being listed could serve. */
  #mostRps(arcs: ArcList, firstArc: number): number {
    let most = 0;
    for (let arc = firstArc; arc < arcs.size; arc++) {
      const { capacity, congestion } = this.#columns[arcs.column[arc]!]!;
      most += (congestion.max * capacity) / arcs.work[arc]!;
    }
    return most;
  }

  #noteWeightsInForce(arcs: ArcList, key: string, firstArc: number): void {
    for (const [engineId, weight] of this.#previous.get(key) ?? []) {
      const arc = arcs.arcTo(this.#columnOf.get(engineId), firstArc);
      if (arc >= 0) arcs.previous[arc]! += weight;
    }
  }

  /** Engines with bounds are columns of their own. */
  #noteBounds(arcs: ArcList, key: string, firstArc: number, reachable: readonly number[]): RowBounds {
    const bounds = this.#bounds.get(key);
    if (!bounds) return new Map();
    const ids = reachable.flatMap((at) => this.#columns[at]!.members.map((member) => this.#idOf(member)));
    const followed = followable(bounds, ids, this.#warnings);
    for (const [engineId, { min, max }] of followed) {
      const arc = arcs.arcTo(this.#columnOf.get(engineId), firstArc);
      arcs.min[arc] = min;
      arcs.max[arc] = max;
    }
    return followed;
  }

  /**
   * Follow-up rate x turn gap x seconds to compute the cached tokens anew, divided by the horizon; the seconds are the
   * mean over the engines that could take the flow.
   */
  #moveSeconds(poolId: string, mean: MeanRequest, reachable: readonly number[]): number {
    const { engines, perToken } = this.#prefill(reachable);
    if (engines === 0) return LEAST_MOVE_SECONDS;
    const horizon = horizonSeconds(settledSecondsOf(this.#input.state, poolId));
    return Math.max(LEAST_MOVE_SECONDS, (mean.cachedTokenSeconds * perToken) / engines / horizon);
  }

  /** Number of engines of some columns, and the sum of their seconds per prompt token; once for rows that reach the same. */
  #prefill(reachable: readonly number[]): Prefill {
    const known = this.#prefills.get(reachable);
    if (known) return known;
    let engines = 0;
    let perToken = 0;
    for (const at of reachable) {
      const { members, profile, latencyFactor } = this.#columns[at]!;
      engines += members.length;
      perToken += members.length * latencyFactor * profile.ttft.secondsPerUncachedPromptToken;
    }
    const prefill = { engines, perToken };
    this.#prefills.set(reachable, prefill);
    return prefill;
  }

  #idOf(engine: number): string {
    return this.#input.state.fleet.engines[engine]!.id;
  }
}

/** The arcs of a problem while they are being listed. */
class ArcList {
  size = 0;
  readonly row: Int32Array;
  readonly column: Int32Array;
  readonly cost: Float64Array;
  readonly work: Float64Array;
  readonly previous: Float64Array;
  readonly min: Float64Array;
  readonly max: Float64Array;

  constructor(most: number) {
    this.row = new Int32Array(most);
    this.column = new Int32Array(most);
    this.cost = new Float64Array(most);
    this.work = new Float64Array(most);
    this.previous = new Float64Array(most);
    this.min = new Float64Array(most);
    this.max = new Float64Array(most).fill(1);
  }

  /** The arc to a column among those from `firstArc` on, which ascend by column; -1 when there is none. */
  arcTo(column: number | undefined, firstArc: number): number {
    if (column === undefined) return -1;
    let low = firstArc;
    let high = this.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.column[middle]! < column) low = middle + 1;
      else high = middle;
    }
    return low < this.size && this.column[low] === column ? low : -1;
  }

  problem(rows: readonly Row[], columns: readonly Column[], warnings: readonly string[]): Problem {
    return {
      rows,
      columns,
      arcRow: this.row.subarray(0, this.size),
      arcColumn: this.column.subarray(0, this.size),
      arcCost: this.cost.subarray(0, this.size),
      arcWork: this.work.subarray(0, this.size),
      arcPrevious: this.previous.subarray(0, this.size),
      arcMin: this.min.subarray(0, this.size),
      arcMax: this.max.subarray(0, this.size),
      warnings,
    };
  }
}

/** Requests per second by class that there is any question of serving, when engines can do at most so much. */
function askedRates(classes: readonly Demand[], most: number): number[] {
  const rates: number[] = [];
  for (const { requestsPerSecond } of classes) {
    rates.push(LEAST_SERVED * requestsPerSecond > most ? 0 : Math.min(requestsPerSecond, MOST_ASKED * most));
  }
  return rates;
}

interface Prefill {
  readonly engines: number;
  readonly perToken: number;
}

interface ClassesOfRow {
  readonly classes: readonly Demand[];
  readonly mean: MeanRequest;
}

function classesByRow(
  demands: readonly Demand[],
  servedRps: readonly number[] | undefined,
): ReadonlyMap<string, ClassesOfRow> {
  const rows = new Map<string, { readonly classes: Demand[]; readonly rates: number[] }>();
  for (let at = 0; at < demands.length; at++) {
    const demand = demands[at]!;
    const key = rowKey(demand);
    let row = rows.get(key);
    if (!row) {
      row = { classes: [], rates: [] };
      rows.set(key, row);
    }
    row.classes.push(demand);
    row.rates.push(servedRps ? servedRps[at]! : demand.requestsPerSecond);
  }
  const means = new Map<string, ClassesOfRow>();
  for (const [key, { classes, rates }] of rows) means.set(key, { classes, mean: meanMix(classes, rates) });
  return means;
}

function meansByPool({ state }: SolverInput): ReadonlyMap<string, MeanRequest> {
  const demands = groupBy(state.demands, poolOf);
  const means = new Map<string, MeanRequest>();
  for (const { id } of state.fleet.pools) means.set(id, meanMix(demands.get(id) ?? []));
  return means;
}

/** FNV-1a of a string's code units. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** Two hashes mixed to a number in 0..1 (the finaliser of MurmurHash3). */
function fractionOf(a: number, b: number): number {
  let mixed = a ^ Math.imul(b, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 0) / 2 ** 32;
}
