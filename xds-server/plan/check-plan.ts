import type { Demand, EngineState, FleetState } from '../fleet/fleet-state.js';
import type { Policy } from '../fleet/policy.js';
import { tiedEngines } from '../optimizer/check/tied-engines.js';
import { type Profile, workSeconds } from '../profiles/profile.js';
import { HASH_SPACE, type Plan, type PlanRow } from './plan.js';
import { atOnce, type Steps } from './steps.js';

/**
 * Relative excess over a hard limit that comes from shares too small to publish (at most 2^-20 for each of up to 1000
 * engines), from rounding to four digits and from the dead band of weights (half a per mille each).
 */
const CAPACITY_TOLERANCE = 0.002;
/** A plan that stays in force may state capacities that are up to a tenth off by now, relative. */
const STATED_CAPACITY_TOLERANCE = 0.1;
/** Its utilisations depend on demands that may be a tenth off, too. */
const STATED_RHO_TOLERANCE = 0.25;
/** Less than this of a replica can serve nobody. */
const LEAST_CAPACITY = 1e-6;
/** Shedding needs an engine at least this near to its hard limit; the dead band of shedding is below it. */
const SHED_NEEDS_UTILIZATION = 0.95;
/**
 * No more room than this share of the capacity that pools tie to an engine counts as none: it is what the large ones among these are
 * short of their limits by rounding.
 */
const SMALL_ROOM = 1e-4;
/** Shed fractions are no finer: what one step less would serve is no room that somebody is refused for. */
const SHED_STEP = 5e-9;

export type ViolationCode =
  | 'rows-incomplete'
  | 'weights-invalid'
  | 'weights-sum'
  | 'segments-invalid'
  | 'segments-length'
  | 'row-unserved'
  | 'owner-ineligible'
  | 'backup-ineligible'
  | 'fraction-invalid'
  | 'shed-needless'
  | 'capacity-exceeded'
  | 'engines-invalid'
  | 'objective-invalid';

export interface Violation {
  readonly code: ViolationCode;
  /** Where, what was found and what is right. */
  readonly message: string;
}

export interface CheckInput {
  readonly plan: Plan;
  readonly state: FleetState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
}

/**
 * What is wrong with a plan, from its own numbers and the state that it was made for; empty when it may be
 * published. Shares nothing with the code that makes plans, so that one mistake is not made twice.
 */
export function checkPlan(input: CheckInput): Violation[] {
  return atOnce(checkingPlan(input));
}

/** `checkPlan`, row by row. */
export function* checkingPlan(input: CheckInput): Steps<Violation[]> {
  const violations: Violation[] = [];
  const report = (code: ViolationCode, message: string) => violations.push({ code, message });
  const ways = new Ways(input.state);
  checkRowSet(input, report);
  for (const row of input.plan.rows) {
    const where = `row (${row.frontendId}, ${row.poolId})`;
    checkWeights(row, where, report);
    checkSegments(row, where, report);
    checkEligibility(row, where, input, ways, report);
    checkFractions(row, where, report);
    yield;
  }
  yield* checkLoads(input, ways, report);
  if (!(Number.isFinite(input.plan.objectiveSeconds) && input.plan.objectiveSeconds >= 0)) {
    report(
      'objective-invalid',
      `the objective is ${input.plan.objectiveSeconds}, not a number of at least 0`,
    );
  }
  return violations;
}

type Report = (code: ViolationCode, message: string) => void;

function checkRowSet({ plan, state }: CheckInput, report: Report): void {
  const pairs = new Set<string>();
  for (const { id: frontendId } of state.fleet.frontends) {
    for (const { id: poolId } of state.fleet.pools) pairs.add(`${frontendId}\n${poolId}`);
  }
  for (const { frontendId, poolId } of plan.rows) {
    if (!pairs.delete(`${frontendId}\n${poolId}`)) {
      report('rows-incomplete', `row (${frontendId}, ${poolId}) is there twice or names something unknown`);
    }
  }
  for (const pair of pairs) report('rows-incomplete', `row (${pair.replace('\n', ', ')}) is missing`);
}

function checkWeights({ weights }: PlanRow, where: string, report: Report): void {
  let sum = 0;
  weights.forEach(({ engineId, weight }, index) => {
    if (!(weight > 0 && weight <= 1)) {
      report('weights-invalid', `${where}: weight of ${engineId} is ${weight}, not above 0 and at most 1`);
    }
    if (index > 0 && !(weights[index - 1]!.engineId < engineId)) {
      report('weights-invalid', `${where}: ${engineId} is out of order or there twice`);
    }
    sum += weight;
  });
  if (weights.length > 0 && !(Math.abs(sum - 1) < 1e-9)) {
    report('weights-sum', `${where}: weights add up to ${sum}, not 1`);
  }
}

function checkSegments({ segments, weights }: PlanRow, where: string, report: Report): void {
  if (segments.length > 0 && segments[0]!.start !== 0) {
    report('segments-invalid', `${where}: the first segment starts at ${segments[0]!.start}, not 0`);
  }
  const owned = new Map<string, number>();
  for (let index = 0; index < segments.length; index++) {
    const { start, ownerId } = segments[index]!;
    const end = index + 1 < segments.length ? segments[index + 1]!.start : HASH_SPACE;
    if (!(Number.isInteger(start) && start >= 0 && start < end)) {
      report('segments-invalid', `${where}: segment ${index} runs from ${start} to ${end}`);
    }
    owned.set(ownerId, (owned.get(ownerId) ?? 0) + end - start);
  }
  for (const { engineId, weight } of weights) {
    const length = owned.get(engineId) ?? 0;
    if (length !== weight * HASH_SPACE) {
      report(
        'segments-length',
        `${where}: ${engineId} owns ${length} points, its weight is ${weight * HASH_SPACE} points`,
      );
    }
    owned.delete(engineId);
  }
  for (const ownerId of owned.keys()) {
    report('segments-length', `${where}: ${ownerId} owns segments without a weight`);
  }
}

/** Which engines may serve a row and can be reached from its frontend. */
class Ways {
  readonly #state: FleetState;
  readonly #frontends: ReadonlyMap<string, number>;
  readonly #engines: ReadonlyMap<string, number>;
  readonly #eligible: ReadonlyMap<string, ReadonlySet<string>>;

  constructor(state: FleetState) {
    const { frontends, engines, pools } = state.fleet;
    this.#state = state;
    this.#frontends = new Map(frontends.map(({ id }, at) => [id, at]));
    this.#engines = new Map(engines.map(({ id }, at) => [id, at]));
    this.#eligible = new Map(pools.map(({ id, engineIds }) => [id, new Set(engineIds)]));
  }

  has({ frontendId, poolId }: PlanRow, engineId: string): boolean {
    const network = this.#state.fleet.networkSeconds[this.#frontends.get(frontendId) ?? -1];
    const isEligible = this.#eligible.get(poolId)?.has(engineId) === true;
    return isEligible && Number.isFinite(network?.[this.#engines.get(engineId) ?? -1]);
  }
}

function checkEligibility(
  row: PlanRow,
  where: string,
  { state, policy }: CheckInput,
  ways: Ways,
  report: Report,
): void {
  const owners = new Set(row.segments.map(({ ownerId }) => ownerId));
  for (const ownerId of owners) {
    if (!ways.has(row, ownerId)) {
      report('owner-ineligible', `${where}: ${ownerId} may not or cannot serve it`);
    }
  }
  const backups = new Set(row.segments.flatMap(({ backupId }) => backupId ?? []));
  for (const backupId of backups) {
    if (!ways.has(row, backupId)) {
      report('backup-ineligible', `${where}: the backup ${backupId} may not or cannot serve it`);
    }
  }
  if (row.segments.some(({ ownerId, backupId }) => ownerId === backupId)) {
    report('backup-ineligible', `${where}: an engine is its own backup`);
  }
  if (row.weights.length > 0) return;
  const closed = new Set(
    policy.bounds
      .filter(
        ({ frontendId, poolId, max }) => frontendId === row.frontendId && poolId === row.poolId && max === 0,
      )
      .map(({ engineId }) => engineId),
  );
  const able = state.engines.find(
    (engine) => ways.has(row, engine.id) && !closed.has(engine.id) && capacityOf(engine) > 0,
  );
  if (able !== undefined) report('row-unserved', `${where}: nobody serves it although ${able.id} could`);
}

function checkFractions({ demandRps, retryRatio, shed }: PlanRow, where: string, report: Report): void {
  if (!(Number.isFinite(demandRps) && demandRps >= 0)) {
    report('fraction-invalid', `${where}: the demand is ${demandRps}`);
  }
  if (!(retryRatio >= 0 && retryRatio <= 1)) {
    report('fraction-invalid', `${where}: the retry ratio is ${retryRatio}, not from 0 to 1`);
  }
  shed.forEach(({ priority, fraction }, index) => {
    if (!(fraction >= 0 && fraction <= 1)) {
      report('fraction-invalid', `${where}: priority ${priority} sheds ${fraction}, not from 0 to 1`);
    }
    if (index > 0 && !(shed[index - 1]!.priority > priority)) {
      report('fraction-invalid', `${where}: priority ${priority} is out of order or there twice`);
    }
  });
}

/** Recomputes the load of every engine from demands, weights and work. */
function* checkLoads({ plan, state, profiles, policy }: CheckInput, ways: Ways, report: Report): Steps<void> {
  const profileIds = new Map(state.fleet.engines.map(({ id, profile }) => [id, profile]));
  const demandsOf = new Map<string, Demand[]>();
  for (const demand of state.demands) {
    const key = `${demand.frontendId}\n${demand.poolId}`;
    demandsOf.set(key, [...(demandsOf.get(key) ?? []), demand]);
  }
  const loads = new Map<string, number>();
  const steps = new Map<string, number>();
  for (const row of plan.rows) {
    for (const { engineId, weight } of row.weights) {
      const profile = profiles.get(profileIds.get(engineId) ?? '');
      if (profile === undefined) {
        report('engines-invalid', `engine ${engineId} has weight but no profile`);
        continue;
      }
      for (const demand of demandsOf.get(`${row.frontendId}\n${row.poolId}`) ?? []) {
        const refused = row.shed.find(({ priority }) => priority === demand.priority);
        const fraction = refused?.fraction ?? 0;
        const offered = demand.requestsPerSecond * weight * workSeconds(profile, demand);
        loads.set(engineId, (loads.get(engineId) ?? 0) + offered * (1 - fraction));
        steps.set(engineId, (steps.get(engineId) ?? 0) + offered * Math.min(fraction, SHED_STEP));
      }
    }
    yield;
  }

  const utilizations = new Map<string, number>();
  for (const engine of state.engines) {
    const load = loads.get(engine.id) ?? 0;
    const limit = capacityOf(engine) * policy.maxUtilization;
    if (!(load <= limit * (1 + CAPACITY_TOLERANCE) + 1e-9)) {
      report(
        'capacity-exceeded',
        `engine ${engine.id} would get ${load} replica-seconds of work per second, its hard limit is ${limit}`,
      );
    }
    if (limit > 0) utilizations.set(engine.id, (load + (steps.get(engine.id) ?? 0)) / limit);
  }
  checkEngines(plan, state, loads, report);
  yield* checkNeed({ plan, state, policy }, utilizations, ways, report);
}

function checkEngines(
  plan: Plan,
  state: FleetState,
  loads: ReadonlyMap<string, number>,
  report: Report,
): void {
  const stated = new Map(plan.engines.map((engine) => [engine.engineId, engine]));
  for (const engine of state.engines) {
    const entry = stated.get(engine.id);
    const capacity = capacityOf(engine);
    if (entry === undefined) {
      report('engines-invalid', `engine ${engine.id} is missing`);
      continue;
    }
    if (!isNear(entry.effectiveCapacity, capacity, STATED_CAPACITY_TOLERANCE)) {
      report(
        'engines-invalid',
        `engine ${engine.id}: capacity ${entry.effectiveCapacity} instead of ${capacity}`,
      );
    }
    const rho = capacity > 0 ? (loads.get(engine.id) ?? 0) / capacity : 0;
    if (capacity > 0 && !isNear(entry.rho, rho, STATED_RHO_TOLERANCE)) {
      report('engines-invalid', `engine ${engine.id}: utilisation ${entry.rho} instead of ${rho}`);
    }
    const prices = [entry.congestionPriceSeconds, entry.scarcityPriceSeconds];
    if (!prices.every((price) => Number.isFinite(price) && price >= 0)) {
      report('engines-invalid', `engine ${engine.id}: the prices are ${prices.join(' and ')}`);
    }
  }
}

/** Nothing is shed while all engines that could serve it are below hard limits, unless an operator bounds weights. */
function* checkNeed(
  { plan, state, policy }: Pick<CheckInput, 'plan' | 'state' | 'policy'>,
  utilizations: ReadonlyMap<string, number>,
  ways: Ways,
  report: Report,
): Steps<void> {
  const shedding = plan.rows.filter(({ frontendId, poolId, shed }) => {
    const bounded = policy.bounds.some((bound) => bound.frontendId === frontendId && bound.poolId === poolId);
    return !bounded && shed.some(({ fraction }) => fraction > 0);
  });
  if (shedding.length === 0) return;
  const tied = tiedCapacities(state);
  for (const row of shedding) {
    const { frontendId, poolId } = row;
    let room = 0;
    let enough = 0;
    const usable = state.engines.flatMap((engine) => {
      const utilization = ways.has(row, engine.id) ? utilizations.get(engine.id) : undefined;
      if (utilization === undefined) return [];
      room += capacityOf(engine) * (1 - utilization);
      enough = SMALL_ROOM * tied.get(engine.id)!;
      return utilization;
    });
    if (room > enough && Math.max(...usable) < SHED_NEEDS_UTILIZATION) {
      report(
        'shed-needless',
        `row (${frontendId}, ${poolId}) sheds although its fullest engine is at ${Math.max(...usable)} of its hard limit`,
      );
    }
    yield;
  }
}

/** By engine: the capacity of all that pools tie to it, directly or by way of others, its own among it. */
function tiedCapacities(state: FleetState): ReadonlyMap<string, number> {
  const capacities = new Map(state.engines.map((engine) => [engine.id, capacityOf(engine)]));
  const tied = new Map<string, number>();
  for (const group of new Set(tiedEngines({ state }).values())) {
    const total = group.reduce((sum, id) => sum + (capacities.get(id) ?? 0), 0);
    for (const id of group) tied.set(id, total);
  }
  return tied;
}

/** Within a relative tolerance of the larger; differences of small loads and capacities do not count. */
function isNear(stated: number, actual: number, tolerance: number): boolean {
  const scale = Math.max(Math.abs(stated), Math.abs(actual), 0.1);
  return Number.isFinite(stated) && Math.abs(stated - actual) <= tolerance * scale;
}

function capacityOf(engine: EngineState): number {
  const ready = engine.replicas.filter((replica) => replica.ready).length;
  const capacity = ready * engine.health * engine.ramp * engine.drain * (1 - engine.penalty);
  return capacity >= LEAST_CAPACITY ? capacity : 0;
}
