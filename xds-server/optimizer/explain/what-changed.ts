import { isDeepStrictEqual } from 'node:util';
import type { Fleet } from '../../fleet/fleet.js';
import { lastResortsOf, withoutLastResorts } from '../../fleet/last-resort.js';
import { rowKey } from '../../fleet/row-key.js';
import { percent } from '../../percent.js';
import type { OptimizerInput, Solution, SolutionRow } from '../solution.js';

/**
 * Kinds of input, in the order in which they are exchanged.
 * - `time`: the weights in force and how long conditions have held, which makes moves cheaper.
 * - `config`: the fleet and its pools, the policy. `network`: latencies and egress. `profile`: curves, work, reference mix.
 * - `capacity`: readiness, health, ramp, drain and penalty, and what engines are the last resort of. `demand`: rates and sizes of requests.
 */
const causes = ['time', 'config', 'network', 'profile', 'capacity', 'demand'] as const;

export type Cause = (typeof causes)[number];

export interface WeightChange {
  readonly frontendId: string;
  readonly poolId: string;
  readonly engineId: string;
  readonly before: number;
  readonly after: number;
}

/** What the exchange of one kind of input did, after those before it. */
export interface CauseEffect {
  readonly cause: Cause;
  /** Sorted by frontend, pool and engine. */
  readonly weights: readonly WeightChange[];
  /** Requests per second of moved flow: half the sum of all changes of weight, times what is served. */
  readonly movedRps: number;
  /** Change of user-seconds per second, and of requests refused per second. */
  readonly objectiveSeconds: number;
  readonly refusedRps: number;
}

export interface WhatChanged {
  /** Only kinds of input that differ; their effects add up to the whole change. */
  readonly effects: readonly CauseEffect[];
  /** All changes together. */
  readonly weights: readonly WeightChange[];
}

/** Changes of weight below this are rounding. */
const LEAST_CHANGE = 1e-9;
/** In words, of each kind of input. */
const MOST_CHANGES = 40;

/**
 * Which input caused which change between two solutions: solves again and again while one kind of input after the other
 * is exchanged. What two changes do only together counts for the later one.
 */
export async function whatChanged(
  optimizer: { solve(input: OptimizerInput): Promise<Solution> },
  before: OptimizerInput,
  after: OptimizerInput,
): Promise<WhatChanged> {
  const effects: CauseEffect[] = [];
  const taken = new Set<Cause>();
  const first = await optimizer.solve({ ...before, isTrial: true });
  let input = before;
  let solution = first;
  for (const cause of causes) {
    taken.add(cause);
    const next = exchanged(before, after, taken);
    if (isDeepStrictEqual(withoutClock(next), withoutClock(input))) continue;
    const nextSolution = await optimizer.solve({ ...next, isTrial: true });
    effects.push(effectOf(cause, solution, nextSolution));
    input = next;
    solution = nextSolution;
  }
  return { effects, weights: weightChanges(first, solution) };
}

/** An effect in one line for each change of weight; nothing that would read as no change. */
export function whatChangedText({ effects }: WhatChanged): string {
  if (effects.length === 0) return 'No input changed.';
  const texts = effects.flatMap(textOf);
  return texts.length === 0 ? 'Inputs changed, but nothing that shows followed.' : texts.join('\n');
}

function textOf({ cause, weights, movedRps, objectiveSeconds, refusedRps }: CauseEffect): readonly string[] {
  const all = weights.filter(({ before, after }) => percent(before) !== percent(after));
  const changes = largest(all).map(
    ({ frontendId, poolId, engineId, before, after }) =>
      `  ${frontendId} → ${engineId}, pool ${poolId}: ${percent(before)} → ${percent(after)}`,
  );
  const left = all.length - changes.length;
  if (left > 0) changes.push(`  … and ${left} smaller changes; JSON has all`);
  const moved = movedRps.toFixed(1);
  if (changes.length === 0 && moved === '0.0' && isShownAsZero(objectiveSeconds) && isShownAsZero(refusedRps))
    return [];
  const sums = [
    `${moved} requests/s moved`,
    `${signed(objectiveSeconds)} user-seconds/s`,
    ...(isShownAsZero(refusedRps) ? [] : [`${signed(refusedRps)} requests/s refused`]),
  ];
  return [`${cause === 'time' ? TIME_TEXT : cause}: ${sums.join(', ')}`, ...changes];
}

/** The largest changes of many, in the order in which all are. */
function largest(changes: readonly WeightChange[]): readonly WeightChange[] {
  if (changes.length <= MOST_CHANGES) return changes;
  const sizes = changes.map(({ before, after }) => Math.abs(after - before)).sort((a, b) => b - a);
  const least = sizes[MOST_CHANGES - 1]!;
  return changes.filter(({ before, after }) => Math.abs(after - before) >= least).slice(0, MOST_CHANGES);
}

const TIME_TEXT = 'time that conditions have held';

/** The earlier input with the kinds taken so far exchanged for the later ones, made to fit together by ids. */
function exchanged(before: OptimizerInput, after: OptimizerInput, taken: ReadonlySet<Cause>): OptimizerInput {
  const config = taken.has('config') ? after : before;
  const time = taken.has('time') ? after : before;
  const profile = taken.has('profile') ? after : before;
  const demand = taken.has('demand') ? after : before;
  const frontends = new Set(config.state.fleet.frontends.map(({ id }) => id));
  const pools = new Set(config.state.fleet.pools.map(({ id }) => id));
  const capacity = taken.has('capacity') ? after : before;
  const fleet = withoutLastResorts(config.state.fleet, lastResortsOf(capacity.state.fleet));
  return {
    state: {
      fleet: withNetwork(fleet, taken.has('network') ? [after, before] : [before, after]),
      engines: enginesFor(fleet, taken.has('capacity') ? [after, before] : [before, after]),
      demands: demand.state.demands.filter(
        ({ frontendId, poolId }) => frontends.has(frontendId) && pools.has(poolId),
      ),
      settledSeconds: time.state.settledSeconds,
      ...(time.state.settledSecondsByPool && { settledSecondsByPool: time.state.settledSecondsByPool }),
      atMs: time.state.atMs,
    },
    profiles: new Map([...after.profiles, ...before.profiles, ...profile.profiles]),
    referenceMix: new Map([...after.referenceMix, ...before.referenceMix, ...profile.referenceMix]),
    policy: config.policy,
    previousWeights: time.previousWeights,
  };
}

/** A fleet with latencies and egress from the first of these inputs that knows the pair. */
function withNetwork(fleet: Fleet, sources: readonly OptimizerInput[]): Fleet {
  const seconds = matrixFor(fleet, sources, (source) => source.networkSeconds);
  if (!sources.some(({ state }) => state.fleet.egressDollarsPerRequest))
    return { ...fleet, networkSeconds: seconds };
  const dollars = matrixFor(fleet, sources, (source) => source.egressDollarsPerRequest);
  return { ...fleet, networkSeconds: seconds, egressDollarsPerRequest: dollars };
}

function matrixFor(
  fleet: Fleet,
  sources: readonly OptimizerInput[],
  matrixOf: (fleet: Fleet) => readonly (readonly number[])[] | undefined,
): number[][] {
  const lookups = sources.map(({ state }) => ({
    frontends: new Map(state.fleet.frontends.map(({ id }, at) => [id, at])),
    engines: new Map(state.fleet.engines.map(({ id }, at) => [id, at])),
    matrix: matrixOf(state.fleet),
  }));
  return fleet.frontends.map((frontend) =>
    fleet.engines.map((engine) => {
      for (const { frontends, engines, matrix } of lookups) {
        const row = frontends.get(frontend.id);
        const column = engines.get(engine.id);
        if (row !== undefined && column !== undefined) return matrix?.[row]?.[column] ?? 0;
      }
      return Infinity;
    }),
  );
}

/** The state of each engine from the first of these inputs that has it. */
function enginesFor(fleet: Fleet, sources: readonly OptimizerInput[]): OptimizerInput['state']['engines'] {
  const states = new Map(
    [...sources].reverse().flatMap(({ state }) => state.engines.map((each) => [each.id, each])),
  );
  return fleet.engines.map(({ id }) => states.get(id)!);
}

/** The wall clock changes nothing, and how thoroughly backups are sought no weights. */
function withoutClock(input: OptimizerInput): OptimizerInput {
  return { ...input, isTrial: true, state: { ...input.state, atMs: 0 } };
}

function effectOf(cause: Cause, before: Solution, after: Solution): CauseEffect {
  const weights = weightChanges(before, after);
  const served = new Map(after.rows.map((row) => [rowKey(row), servedRps(row)]));
  return {
    cause,
    weights,
    movedRps: weights.reduce(
      (sum, change) => sum + 0.5 * Math.abs(change.after - change.before) * (served.get(rowKey(change)) ?? 0),
      0,
    ),
    objectiveSeconds: after.objectiveSeconds - before.objectiveSeconds,
    refusedRps: refusedRps(after) - refusedRps(before),
  };
}

function weightChanges(before: Solution, after: Solution): WeightChange[] {
  const old = weightsByPair(before);
  const now = weightsByPair(after);
  return [...new Set([...old.keys(), ...now.keys()])].sort().flatMap((key) => {
    const [frontendId, poolId, engineId] = JSON.parse(key) as [string, string, string];
    const change = { before: old.get(key) ?? 0, after: now.get(key) ?? 0 };
    return Math.abs(change.after - change.before) > LEAST_CHANGE
      ? [{ frontendId, poolId, engineId, ...change }]
      : [];
  });
}

function weightsByPair({ rows }: Solution): Map<string, number> {
  return new Map(
    rows.flatMap(({ frontendId, poolId, weights }) =>
      weights.map(({ engineId, weight }) => [JSON.stringify([frontendId, poolId, engineId]), weight]),
    ),
  );
}

function servedRps({ flows }: SolutionRow): number {
  return flows.reduce((sum, { rps }) => sum + rps, 0);
}

function refusedRps({ rows }: Solution): number {
  return rows.reduce((sum, row) => sum + Math.max(0, row.demandRps - servedRps(row)), 0);
}

function isShownAsZero(value: number): boolean {
  return Math.abs(value) < 0.0005;
}

function signed(value: number): string {
  if (isShownAsZero(value)) return '0.000';
  return `${value < 0 ? '−' : '+'}${Math.abs(value).toFixed(3)}`;
}
