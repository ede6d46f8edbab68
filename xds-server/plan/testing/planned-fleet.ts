import { loadConfig } from '../../config/load.js';
import { Signals } from '../../signals/signals.js';
import { makePlan, type PlanOutcome, type PlanSolver } from '../make-plan.js';
import { endOf } from '../partition/segments.js';
import { HASH_SPACE, type Plan, type PlanRow, type Segment } from '../plan.js';

/** A fleet of one model in a few numbers. */
export interface TestFleet {
  /** Requests per second that each engine can serve. */
  readonly engines: Readonly<Record<string, number>>;
  /** Round trips in milliseconds from frontends to engines; null where there is no way. */
  readonly rttMs: Readonly<Record<string, Readonly<Record<string, number | null>>>>;
  /** Requests per second of each frontend. */
  readonly demand: Readonly<Record<string, number>>;
  /** Ids of engines without a ready replica. */
  readonly lost?: readonly string[];
}

/** The plan that follows `previous`, made by the real optimizer from a real configuration. */
export function planFor(solver: PlanSolver, fleet: TestFleet, previous: Plan | null): Promise<PlanOutcome> {
  const config = loadConfig('/none/fleet.yaml', () => JSON.stringify(configOf(fleet)));
  const { state } = new Signals(config, [], 0).evaluate(0);
  const engines = state.engines.map((engine) => ({
    ...engine,
    replicas: engine.replicas.map((replica) => ({ ...replica, ready: !fleet.lost?.includes(engine.id) })),
  }));
  const { profiles, policy } = config;
  return makePlan(solver, { previous, state: { ...state, engines }, profiles, policy }, () => 0);
}

function configOf({ engines, rttMs, demand }: TestFleet): object {
  return {
    frontends: Object.keys(rttMs).map((id) => ({ id, region: id })),
    engines: Object.entries(engines).map(([id, rps], index) => ({
      id,
      region: id,
      models: ['m'],
      profile: `p${rps}`,
      endpoints: [`10.0.0.${index + 1}:80`],
    })),
    network: { rttMs },
    profiles: Object.fromEntries(
      Object.values(engines).map((rps) => [`p${rps}`, { requestsPerSecond: rps }]),
    ),
    demand: Object.fromEntries(
      Object.entries(demand).map(([id, requestsPerSecond]) => [
        id,
        { requestsPerSecond, promptTokens: 20, outputTokens: 32 },
      ]),
    ),
  };
}

/** The row of a frontend; these fleets have one pool. */
export function rowOf(plan: Plan, frontendId: string): PlanRow {
  return plan.rows.find((row) => row.frontendId === frontendId)!;
}

/** A part of the hash space that lies in one segment before and in one after. */
export interface Piece {
  /** Share of the hash space. */
  readonly share: number;
  readonly before: Segment;
  readonly after: Segment;
}

export function pieces(before: PlanRow, after: PlanRow): Piece[] {
  const starts = [...new Set([...before.segments, ...after.segments].map(({ start }) => start))].sort(
    (a, b) => a - b,
  );
  const holder = (segments: readonly Segment[], point: number): Segment =>
    segments.find(({ start }, index) => start <= point && point < endOf(segments, index))!;
  return starts.map((start, index) => ({
    share: ((starts[index + 1] ?? HASH_SPACE) - start) / HASH_SPACE,
    before: holder(before.segments, start),
    after: holder(after.segments, start),
  }));
}
