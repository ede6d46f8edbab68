import type { Fleet } from '../../xds-server/fleet/fleet.js';
import type { FleetState } from '../../xds-server/fleet/fleet-state.js';
import { classId } from '../../xds-server/fleet/priority-class.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { LocalExecutor } from '../../xds-server/optimizer/thread/executor.js';
import type { Fault, Scenario, ScenarioDemand, ScenarioEngine } from '../scenario.js';
import { rowOf } from './choices.js';
import { addressOf, ControlLoop, wallMs } from './control-loop.js';
import { ranked } from './hashing.js';
import type { PolicyFactory } from './policy.js';

const LOOK_SECONDS = 1;

/**
 * The fluid optimum with true demand and true engines, at once and free of move costs; conversations find their
 * earlier turns cached wherever they go. What a planner of flows could reach at best. No bound for policies that see
 * queues at each request: those can do better where queues, not places, decide.
 */
export const clairvoyant: PolicyFactory = async ({ scenario: given }) => {
  const scenario = {
    ...given,
    engines: given.engines.map((engine) => ({ ...engine, believedSlowness: 1 })),
  };
  const loop = new ControlLoop(scenario);
  const optimizer = new Optimizer({ executor: () => new LocalExecutor() });
  const { config, poolIds } = loop;
  const { profiles, policy } = config;
  /** By frontend and pool. */
  let weights: (readonly number[])[][] = [];
  let solvedFor = '';
  let lookedAt = Number.NEGATIVE_INFINITY;

  const look = async (now: number) => {
    const state = trueState(scenario, config.fleet, poolIds, now);
    const question = JSON.stringify([state.engines, state.demands, state.fleet.networkSeconds]);
    if (question === solvedFor) return;
    solvedFor = question;
    const input = { state, profiles, policy, previousWeights: [], referenceMix: new Map() };
    const { rows } = await optimizer.solve(input);
    weights = scenario.frontends.map(({ id }) =>
      poolIds.map((poolId) => {
        const row = rows.find((other) => other.frontendId === id && other.poolId === poolId);
        return scenario.engines.map(({ engineId }) => {
          const replicas = scenario.engines.filter((engine) => engine.engineId === engineId).length;
          return (row?.weights.find((other) => other.engineId === engineId)?.weight ?? 0) / replicas;
        });
      }),
    );
  };

  await look(0);
  return {
    id: 'clairvoyant',
    sharesCaches: true,
    decide: (request) => ranked(request.conversation.hash, rowOf(weights, request)),
    async tick(now) {
      if (now - lookedAt < LOOK_SECONDS) return;
      lookedAt = now;
      await look(now);
    },
    weights: (frontend, pool) => weights[frontend]![pool],
    async close() {
      await optimizer.close();
      await loop.close();
    },
  };
};

/** What is really asked for and really there. */
function trueState(scenario: Scenario, fleet: Fleet, poolIds: readonly string[], now: number): FleetState {
  const { frontends, engines } = scenario;
  const acting = scenario.faults.filter(({ from, until }) => from <= now && now < until);
  const demands = frontends.flatMap(({ id, demands: own }) =>
    own.flatMap((demand) =>
      partsOf(demand, scenario, poolIds).map(({ share, ...part }) => ({
        frontendId: id,
        ...part,
        requestsPerSecond: Math.round(share * demand.rate.at(now) * 10) / 10,
        ...demand.source.expected,
        source: 'measured' as const,
      })),
    ),
  );
  const cut = acting.flatMap((fault) => (fault.kind === 'region-cut' ? [fault.region] : []));
  return {
    fleet: withCuts(fleet, cut),
    atMs: wallMs(now),
    engines: fleet.engines.map(({ id }) => {
      const concerns = (fault: Fault, replica: ScenarioEngine) =>
        'engine' in fault && (fault.engine === id || fault.engine === replica.id);
      const replicas = engines.flatMap((engine, at) => (engine.engineId === id ? [{ engine, at }] : []));
      const isLost = (replica: ScenarioEngine) =>
        acting.some((fault) => fault.kind === 'engine-down' && concerns(fault, replica));
      const slow = acting.find(
        (fault) => fault.kind === 'slow-engine' && concerns(fault, replicas[0]!.engine),
      );
      const slowness = slow?.kind === 'slow-engine' ? slow.slowness : 1;
      return {
        id,
        replicas: replicas.map(({ engine, at }) => ({
          address: addressOf(scenario, at),
          ready: !isLost(engine),
        })),
        health: 1 / slowness,
        ramp: 1,
        drain: 1,
        penalty: 0,
        latencyFactor: slowness,
      };
    }),
    demands: demands
      .filter(({ requestsPerSecond }) => requestsPerSecond > 0)
      .sort(
        (a, b) =>
          compare(a.frontendId, b.frontendId) || compare(a.poolId, b.poolId) || a.priority - b.priority,
      ),
    settledSeconds: 0,
  };
}

/** By pool of the configuration, which needs share that the same engines meet, and priority. */
function partsOf(
  { classShares }: ScenarioDemand,
  { classes }: Scenario,
  poolIds: readonly string[],
): { readonly poolId: string; readonly priority: number; readonly share: number }[] {
  const parts = new Map<string, { poolId: string; priority: number; share: number }>();
  classes.forEach(({ pool, priority: { value: priority } = { value: 0 } }, index) => {
    const poolId = poolIds[pool]!;
    const key = classId(poolId, priority);
    const share = (parts.get(key)?.share ?? 0) + classShares[index]!;
    parts.set(key, { poolId, priority, share });
  });
  return [...parts.values()];
}

/** Nothing crosses the border of a region that is cut off. */
function withCuts(fleet: Fleet, cut: readonly string[]): Fleet {
  const isSevered = (a: string, b: string) => a !== b && cut.some((region) => region === a || region === b);
  const networkSeconds = fleet.networkSeconds.map((row, frontend) =>
    row.map((seconds, engine) => {
      const severed = isSevered(fleet.frontends[frontend]!.region, fleet.engines[engine]!.region);
      return severed ? Number.POSITIVE_INFINITY : seconds;
    }),
  );
  return { ...fleet, networkSeconds };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
