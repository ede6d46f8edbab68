import { compare, groupBy, sum } from '../../collections.js';
import { type Demand, effectiveCapacity, type FleetState } from '../../fleet/fleet-state.js';
import type { Policy } from '../../fleet/policy.js';
import { type RowName, rowKey } from '../../fleet/row-key.js';
import { followable } from '../../optimizer/index.js';
import type {
  BackupShares,
  EngineWeight,
  ShedFraction,
  Solution,
  SolutionRow,
} from '../../optimizer/solution.js';
import { type Profile, workSeconds } from '../../profiles/profile.js';
import { EngineWork } from '../engine-work.js';
import { MIN_WEIGHT } from '../partition/quantise.js';
import type { Steps } from '../steps.js';
import { Usability } from '../usability.js';
import { type Place, type Placeable, plainFlows } from './plain-flows.js';
import { type PlainClass, plainShed, refusesLess } from './plain-shed.js';

/** Each engine is backed by so many others, the nearest. */
const MOST_BACKUPS = 8;
/** Less than this part of a row's largest share is next to nothing. */
const SLIVER = 1e-3;
/** Part of a row that its slivers may be together. */
const MOST_LEFT_OUT = 0.01;
/** Part of a weight that rounding may leave out. */
const ROUNDING = 1e-12;

export interface PlainInput {
  /** The rows to find weights for. */
  readonly rows: readonly RowName[];
  /** Replica-seconds of work per second that engines have from other rows, by id. */
  readonly loads: ReadonlyMap<string, number>;
  readonly state: FleetState;
  /** By profile id. */
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly policy: Policy;
}

interface Placed {
  /** By row and place. */
  readonly weights: readonly (readonly number[])[];
  readonly classes: readonly PlainClass[];
  /** Of the classes. */
  readonly shed: readonly ShedFraction[];
}

interface Row extends RowName, Placeable {
  readonly demands: readonly Demand[];
}

/**
 * Weights that are safe, not best, found without the optimizer and nothing of it: each row fills the nearest engines up to
 * `targetUtilization`, then to the hard limit; what has no room is refused, the least important first. In the form of a solution
 * without prices, so that plans are made of it in the same way. A step is what is done for a row, or less.
 */
export function* plainSolution(input: PlainInput): Steps<Solution> {
  const { state, profiles, policy, loads } = input;
  const rows = yield* rowsOf(input);
  const capacities = state.engines.map(effectiveCapacity);
  const below = (limit: number) =>
    Float64Array.from(
      capacities,
      (capacity, at) => limit * capacity - (loads.get(state.engines[at]!.id) ?? 0),
    );
  const target = below(Math.min(policy.targetUtilization, policy.maxUtilization));
  const limit = below(policy.maxUtilization);
  const between = limit.map((room, at) => room - target[at]!);
  const engineProfiles = state.fleet.engines.map(({ profile }) => profiles.get(profile)!);
  function* placing(groups: readonly (readonly number[])[]): Steps<Placed> {
    const flows = yield* plainFlows(rows, [target, between], groups);
    const weights: number[][] = [];
    const classes: PlainClass[] = [];
    for (const [at, row] of rows.entries()) {
      const all = sum(flows[at]!);
      const shares =
        all > 0 ? Array.from(flows[at]!, (flow) => flow / all) : sharesByCapacity(row.places, capacities);
      weights.push(withoutSlivers(shares, row.places));
      classes.push(...classesOf(row, at, weights[at]!, engineProfiles, policy));
      yield;
    }
    return { weights, classes, shed: yield* plainShed(classes, limit) };
  }
  const { weights, classes, shed: fractions } = yield* bestPlaced(rows, placing);
  const shed = groupBy(
    fractions.map((fraction, at) => ({ ...fraction, row: classes[at]!.row })),
    ({ row }) => row,
  );
  const solved: SolutionRow[] = [];
  for (const [at, row] of rows.entries()) {
    solved.push(solutionRow(row, weights[at]!, shed.get(at) ?? [], capacities));
    yield;
  }
  const own = new EngineWork(state, profiles).loads(solved);
  return {
    rows: solved,
    engines: state.engines.map(({ id: engineId }, at) => {
      const effectiveCapacity = capacities[at]!;
      const load = (loads.get(engineId) ?? 0) + (own.get(engineId) ?? 0);
      const rho = effectiveCapacity > 0 ? load / effectiveCapacity : 0;
      return { engineId, effectiveCapacity, rho, congestionPriceSeconds: 0, scarcityPriceSeconds: 0 };
    }),
    objectiveSeconds: 0,
    lowerBoundSeconds: 0,
    mixErrorSeconds: 0,
    warnings: [],
  };
}

/**
 * All rows take turns; where somebody is refused then, it may be that rows which have a choice filled what others cannot do without, so
 * rows choose the later the more engines they have if that refuses less.
 */
function* bestPlaced(
  rows: readonly Row[],
  placing: (groups: readonly (readonly number[])[]) => Steps<Placed>,
): Steps<Placed> {
  const all = rows.map((_, at) => at);
  const inTurn = yield* placing([all]);
  if (inTurn.shed.every(({ fraction }) => fraction <= ROUNDING)) return inTurn;
  const byChoice = [...groupBy(all, (at) => rows[at]!.places.length)].sort(([a], [b]) => a - b);
  const choosing = yield* placing(byChoice.map(([, group]) => group));
  return refusesLess(inTurn.classes, choosing.shed, inTurn.shed) ? choosing : inTurn;
}

function* rowsOf({ rows, state, profiles, policy }: PlainInput): Steps<Row[]> {
  const { fleet } = state;
  const usability = new Usability(state);
  const demands = groupBy(state.demands, rowKey);
  const bounds = groupBy(policy.bounds, rowKey);
  const found: Row[] = [];
  for (const { frontendId, poolId } of rows) {
    const own = demands.get(rowKey({ frontendId, poolId })) ?? [];
    const requestsPerSecond = sum(own.map((demand) => demand.requestsPerSecond));
    const network = fleet.networkSeconds[fleet.frontends.findIndex(({ id }) => id === frontendId)]!;
    const ids = fleet.pools.find(({ id }) => id === poolId)!.engineIds;
    const usable = new Set(ids.filter((id) => usability.canServe(frontendId, poolId, id)));
    const followed = followable(bounds.get(rowKey({ frontendId, poolId })) ?? [], [...usable], []);
    const places = fleet.engines.flatMap(({ id, profile }, engine): Place[] => {
      if (!usable.has(id)) return [];
      const work = sum(own.map((one) => one.requestsPerSecond * workSeconds(profiles.get(profile)!, one)));
      const { min, max } = followed.get(id) ?? { min: 0, max: 1 };
      const perRequest = requestsPerSecond > 0 ? work / requestsPerSecond : 0;
      const networkSeconds = network[engine]!;
      return [{ engineId: id, engine, networkSeconds, workSeconds: perRequest, min, max }];
    });
    places.sort((a, b) => a.networkSeconds - b.networkSeconds || compare(a.engineId, b.engineId));
    found.push({ frontendId, poolId, requestsPerSecond, demands: own, places });
    yield;
  }
  return found;
}

/**
 * Without shares that no plan states, and but for bounds, without slivers: an engine that is full stops all who use it, so nobody
 * should be refused for next to nothing. The smallest are left out first, and of many that are something together only some.
 */
function withoutSlivers(shares: readonly number[], places: readonly Place[]): number[] {
  const isFree = places.every(({ min, max }) => min <= 0 && max >= 1);
  const sliver = isFree ? SLIVER * Math.max(...shares) : 0;
  const kept = [...shares];
  let leftOut = 0;
  for (const at of [...shares.keys()].sort((a, b) => shares[a]! - shares[b]!)) {
    const share = shares[at]!;
    const isNothing = share < MIN_WEIGHT || (share < sliver && leftOut + share <= MOST_LEFT_OUT);
    if (!isNothing) break;
    leftOut += share;
    kept[at] = 0;
  }
  const all = sum(kept);
  return kept.map((share) => share / all);
}

/** Where there is nothing to place, or no room for any of it: in proportion to capacity, within bounds. */
function sharesByCapacity(places: readonly Place[], capacities: readonly number[]): number[] {
  const weights = places.map(({ min }) => min);
  let rest = 1 - sum(weights);
  let open = places.map((_, at) => at);
  while (rest > ROUNDING && open.length > 0) {
    const all = sum(open.map((at) => capacities[places[at]!.engine]!));
    const given = rest;
    for (const at of open) {
      const { engine, max } = places[at]!;
      const more = Math.min((given * capacities[engine]!) / all, max - weights[at]!);
      weights[at]! += more;
      rest -= more;
    }
    open = open.filter((at) => weights[at]! < places[at]!.max);
  }
  return weights;
}

function classesOf(
  { demands, places, poolId }: Row,
  row: number,
  weights: readonly number[],
  engineProfiles: readonly Profile[],
  policy: Policy,
): PlainClass[] {
  return demands.map((demand) => {
    const { priority, requestsPerSecond } = demand;
    const minShare = policy.minShares.find((each) => each.poolId === poolId && each.priority === priority);
    const work = places.flatMap(({ engine }, at) =>
      weights[at]! > 0
        ? [{ engine, seconds: weights[at]! * workSeconds(engineProfiles[engine]!, demand) }]
        : [],
    );
    return { row, priority, requestsPerSecond, minShare: minShare?.share ?? 0, work };
  });
}

function solutionRow(
  { frontendId, poolId, requestsPerSecond, places }: Row,
  weights: readonly number[],
  shed: SolutionRow['shed'],
  capacities: readonly number[],
): SolutionRow {
  const owners = places.flatMap(({ engineId }, at): EngineWeight[] =>
    weights[at]! > 0 ? [{ engineId, weight: weights[at]! }] : [],
  );
  const bounds = places.filter(({ min, max }) => min > 0 || max < 1);
  return {
    frontendId,
    poolId,
    demandRps: requestsPerSecond,
    flows: [],
    weights: owners,
    shed,
    backups: owners.map(({ engineId }) => backupsOf(engineId, places, capacities)),
    bounds: bounds.map(({ engineId, min, max }) => ({ engineId, min, max, binding: null })),
  };
}

/** The nearest others, in proportion to capacity. */
function backupsOf(ownerId: string, places: readonly Place[], capacities: readonly number[]): BackupShares {
  const others: Place[] = [];
  for (const place of places) {
    if (others.length === MOST_BACKUPS) break;
    if (place.engineId !== ownerId && place.max > 0) others.push(place);
  }
  const all = sum(others.map(({ engine }) => capacities[engine]!));
  const shares = others.map(({ engineId, engine }) => ({ engineId, weight: capacities[engine]! / all }));
  return { ownerId, shares };
}
