import type { RowName } from '../../fleet/row-key.js';
import type { Solution, SolutionRow, SolverInput } from '../solution.js';
import { capacityOf, Flows, workOf } from './flows.js';
import { objectiveOf } from './objective.js';
import { total } from './sums.js';
import { tiedEngines } from './tied-engines.js';

/**
 * Checks a solution from its own numbers and the input, with code of its own: nothing here is shared with the code that
 * solves, so that one mistake is not made twice. The formulas are those of docs/optimizer.md, written down again.
 */

/** Relative error of sums of flows and loads that rounding and shared classes explain. */
const TOLERANCE = 1e-5;
/** Most that the solver adds to the seconds of a request, to break ties between equal engines. */
const TIE_SECONDS = 5e-8;
/** Shed fractions up to this are the margin that is left at the hard limit. */
const LEAST_SHED = 1e-4;
/** An engine with no more room than this share of its hard limit counts as full where something is shed. */
const MOST_ROOM = 1e-3;
/**
 * So does one with room for no more than this share of the requests that all engines can serve that pools tie to it: each leaves a
 * margin, and one may have the room of all. In requests, as the time of others is worth more where they are quicker.
 */
const LEFT_EMPTY = 1e-4;
/** Shed fractions are told no finer: one with room for no more than this share of what a row asks for is full for that. */
const SHED_STEP = 5e-9;

/** What is wrong with a solution; empty when it may be used. Each entry says where, what was found and what is right. */
export function checkSolution(input: SolverInput, solution: Solution): string[] {
  return new SolutionCheck(input, solution).run();
}

/** Objective of a solution's flows in user-seconds per second, computed anew. */
export function recomputedObjective(input: SolverInput, solution: Solution): number {
  return objectiveOf(new Flows(input, solution));
}

class SolutionCheck {
  readonly #input: SolverInput;
  readonly #solution: Solution;
  readonly #flows: Flows;
  readonly #faults: string[] = [];

  constructor(input: SolverInput, solution: Solution) {
    this.#input = input;
    this.#solution = solution;
    this.#flows = new Flows(input, solution);
  }

  run(): string[] {
    this.#checkRowSet();
    for (const row of this.#solution.rows) this.#checkRow(row);
    this.#checkEngines();
    const tied = tiedEngines(this.#input);
    for (const row of this.#solution.rows) this.#checkShed(row, tied);
    // Costs of flows that cannot be are not defined.
    if (this.#faults.length === 0) this.#checkObjective();
    return this.#faults;
  }

  #fault(message: string): void {
    this.#faults.push(message);
  }

  #checkRowSet(): void {
    const { frontends, pools } = this.#input.state.fleet;
    const expected = frontends
      .flatMap((frontend) => pools.map((pool) => `${frontend.id} and ${pool.id}`))
      .sort();
    const found = this.#solution.rows.map(nameOf).sort();
    if (expected.join('\n') !== found.join('\n')) {
      this.#fault(`the rows are ${found.join(', ')} instead of ${expected.join(', ')}`);
    }
  }

  #checkRow(row: SolutionRow): void {
    const where = nameOf(row);
    const { demands, all } = this.#flows.servedOf(row);
    const offered = total(demands.map(({ requestsPerSecond }) => requestsPerSecond));
    if (!near(row.demandRps, offered))
      this.#fault(`${where}: demand is ${row.demandRps} instead of ${offered}`);
    const flows = total(row.flows.map(({ rps }) => rps));
    // What a fraction near 1 leaves is known to the last bit of that only.
    const rounding = Number.EPSILON * offered;
    if (!near(flows, all) && Math.abs(flows - all) > rounding)
      this.#fault(`${where}: flows add up to ${flows} instead of ${all}`);
    for (const { engineId, rps } of row.flows) {
      if (!(rps > 0)) this.#fault(`${where}: the flow to ${engineId} is ${rps}`);
      if (!this.#flows.profileOf(engineId)) this.#fault(`engine ${engineId} has a flow but no profile`);
    }
    this.#checkShares(where, row.weights);
    for (const { engineId } of [...row.weights, ...row.flows]) this.#checkEligible(row, engineId);
    this.#checkBounds(row);
    for (const { ownerId, shares } of row.backups) {
      this.#checkShares(`${where}, backups of ${ownerId}`, shares);
      for (const { engineId } of shares) this.#checkEligible(row, engineId);
      if (shares.some(({ engineId }) => engineId === ownerId))
        this.#fault(`${where}: ${ownerId} backs itself up`);
    }
  }

  #checkShares(
    where: string,
    shares: readonly { readonly engineId: string; readonly weight: number }[],
  ): void {
    const wrong = shares.find(({ weight }) => !(weight > 0 && weight <= 1 + TOLERANCE));
    if (wrong) this.#fault(`${where}: the weight of ${wrong.engineId} is ${wrong.weight}`);
    const sum = total(shares.map(({ weight }) => weight));
    if (shares.length > 0 && !near(sum, 1)) this.#fault(`${where}: weights add up to ${sum} instead of 1`);
  }

  #checkEligible({ frontendId, poolId }: SolutionRow, engineId: string): void {
    const { fleet, engines } = this.#input.state;
    const at = this.#flows.engineIndex.get(engineId) ?? -1;
    const frontend = this.#flows.frontendIndex.get(frontendId) ?? -1;
    const may = this.#flows.eligible.get(poolId)?.has(engineId) === true;
    const can = capacityOf(engines[at]) > 0 && Number.isFinite(fleet.networkSeconds[frontend]?.[at]);
    if (!may || !can)
      this.#fault(`${frontendId} and ${poolId}: ${engineId} ${may ? 'cannot' : 'may not'} serve them`);
  }

  /** Bounds that the solution claims to have applied must be the operator's, possibly loosened, and must hold. */
  #checkBounds(row: SolutionRow): void {
    for (const { engineId, min, max } of row.bounds) {
      const given = this.#input.policy.bounds.find(
        (bound) => bound.engineId === engineId && isOf(bound, row),
      );
      if (!given || min > given.min || max < given.max) {
        this.#fault(`${nameOf(row)}: nobody set the bound ${min}..${max} on ${engineId}`);
      }
      const weight = row.weights.find((each) => each.engineId === engineId)?.weight ?? 0;
      if (row.weights.length > 0 && (weight < min - TOLERANCE || weight > max + TOLERANCE)) {
        this.#fault(`${nameOf(row)}: the weight of ${engineId} is ${weight}, outside ${min}..${max}`);
      }
    }
  }

  #checkEngines(): void {
    const stated = new Map(this.#solution.engines.map((engine) => [engine.engineId, engine]));
    for (const state of this.#input.state.engines) {
      const entry = stated.get(state.id);
      const capacity = capacityOf(state);
      const load = this.#flows.loadOf(state.id);
      if (!entry) {
        this.#fault(`engine ${state.id} is missing`);
        continue;
      }
      if (!near(entry.effectiveCapacity, capacity)) {
        this.#fault(`engine ${state.id}: capacity is ${entry.effectiveCapacity} instead of ${capacity}`);
      }
      const limit = capacity * this.#input.policy.maxUtilization;
      if (!(load <= limit * (1 + TOLERANCE))) {
        this.#fault(`engine ${state.id} gets ${load} replica-seconds per second, its hard limit is ${limit}`);
      }
      if (capacity > 0 && !near(entry.rho, load / capacity)) {
        this.#fault(`engine ${state.id}: utilisation is ${entry.rho} instead of ${load / capacity}`);
      }
      if (!(entry.congestionPriceSeconds >= 0 && entry.scarcityPriceSeconds >= 0)) {
        this.#fault(`engine ${state.id}: a price is below 0 or no number`);
      }
    }
  }

  /** Fractions lie in range, guaranteed shares are kept, and whoever sheds has no engine with room. */
  #checkShed(row: SolutionRow, tied: ReadonlyMap<string, readonly string[]>): void {
    const where = nameOf(row);
    for (const { priority, fraction } of row.shed) {
      if (!(fraction >= 0 && fraction <= 1)) this.#fault(`${where}: priority ${priority} sheds ${fraction}`);
    }
    const shed = Math.max(0, ...row.shed.map(({ fraction }) => fraction));
    if (shed <= LEAST_SHED || row.bounds.length > 0) return;
    const { maxUtilization } = this.#input.policy;
    const engines = this.#flows.enginesOf(row);
    const { mean } = this.#flows.servedOf(row);
    const most = this.#flows.mostRequests(tied.get(engines[0]?.id ?? '') ?? [], mean);
    const leftEmpty = Math.max(LEFT_EMPTY * maxUtilization * most, SHED_STEP * row.demandRps);
    const roomy = engines.find((state) => {
      const limit = maxUtilization * capacityOf(state);
      const room = limit - this.#flows.loadOf(state.id);
      return room > MOST_ROOM * limit && room > leftEmpty * workOf(this.#flows.profileOf(state.id)!, mean);
    });
    if (roomy) this.#fault(`${where}: ${shed} of a class is shed although ${roomy.id} is not full`);
  }

  #checkObjective(): void {
    const { objectiveSeconds, lowerBoundSeconds } = this.#solution;
    const found = objectiveOf(this.#flows);
    const ties = TIE_SECONDS * total(this.#solution.rows.flatMap(({ flows }) => flows.map(({ rps }) => rps)));
    if (!near(objectiveSeconds, found) && Math.abs(objectiveSeconds - found) > ties)
      this.#fault(`the objective is ${objectiveSeconds} instead of ${found}`);
    if (!(lowerBoundSeconds <= objectiveSeconds)) {
      this.#fault(`the lower bound ${lowerBoundSeconds} is above the objective ${objectiveSeconds}`);
    }
  }
}

function isOf(entry: RowName, row: RowName): boolean {
  return entry.frontendId === row.frontendId && entry.poolId === row.poolId;
}

function nameOf({ frontendId, poolId }: RowName): string {
  return `${frontendId} and ${poolId}`;
}

function near(found: number, right: number): boolean {
  return Math.abs(found - right) <= TOLERANCE * Math.max(Math.abs(found), Math.abs(right), 1e-6);
}
