import type { FleetState } from '../../xds-server/fleet/fleet-state.js';
import { LocalExecutor } from '../../xds-server/optimizer/executor.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { addressOf, ControlLoop, wallMs } from './control-loop.js';
import { pickTwo } from './hashing.js';
import type { PolicyFactory } from './policy.js';

const LOOK_SECONDS = 1;

/**
 * The fluid optimum with true demand and true engines, at once and free of move costs; conversations find their
 * earlier turns cached wherever they go. What a planner of flows could reach at best. No bound for policies that see
 * queues at each request: those can do better where queues, not places, decide.
 */
export const clairvoyant: PolicyFactory = async ({ scenario }) => {
  const loop = new ControlLoop(scenario);
  const optimizer = new Optimizer({ executor: () => new LocalExecutor() });
  const { config } = loop;
  const poolId = config.fleet.pools[0]!.id;
  let weights: (readonly number[])[] = [];
  let solvedFor = '';
  let lookedAt = Number.NEGATIVE_INFINITY;

  const stateAt = (now: number): FleetState => {
    const acting = scenario.faults.filter(
      (fault) => fault.kind !== 'control-down' && fault.from <= now && now < fault.until,
    );
    return {
      fleet: config.fleet,
      atMs: wallMs(now),
      engines: config.fleet.engines.map(({ id }) => {
        const index = scenario.engines.findIndex((engine) => engine.id === id);
        const isDown = acting.some((fault) => fault.kind === 'engine-down' && fault.engine === id);
        const slow = acting.find((fault) => fault.kind === 'slow-engine' && fault.engine === id);
        const slowness = slow?.kind === 'slow-engine' ? slow.slowness : 1;
        return {
          id,
          replicas: [{ address: addressOf(index), ready: !isDown }],
          health: 1 / slowness,
          ramp: 1,
          drain: 1,
          penalty: 0,
          latencyFactor: slowness,
        };
      }),
      demands: scenario.frontends.map(({ id, rate, source }) => ({
        frontendId: id,
        poolId,
        priority: 0,
        requestsPerSecond: Math.round(rate.at(now) * 10) / 10,
        ...source.expected,
        source: 'measured' as const,
      })),
      settledSeconds: 0,
    };
  };
  const look = async (now: number) => {
    const state = stateAt(now);
    const question = JSON.stringify([state.engines, state.demands]);
    if (question === solvedFor) return;
    solvedFor = question;
    const { profiles, policy } = config;
    const input = { state, profiles, policy, previousWeights: [], referenceMix: new Map() };
    const { rows } = await optimizer.solve(input);
    weights = scenario.frontends.map(({ id }) => {
      const row = rows.find(({ frontendId }) => frontendId === id)!;
      return scenario.engines.map(
        (engine) => row.weights.find(({ engineId }) => engineId === engine.id)?.weight ?? 0,
      );
    });
  };

  await look(0);
  return {
    id: 'clairvoyant',
    sharesCaches: true,
    decide: ({ frontend, conversation }) => pickTwo(conversation.hash, weights[frontend]!),
    async tick(now) {
      if (now - lookedAt < LOOK_SECONDS) return;
      lookedAt = now;
      await look(now);
    },
    weights: (frontend) => weights[frontend],
    async close() {
      await optimizer.close();
      await loop.close();
    },
  };
};
