import type { OptimizerInput } from '../solution.js';
import { randomNumbers } from './random.js';

/** With the network cost of one pair changed. */
export function withNetwork(
  input: OptimizerInput,
  frontend: number,
  engine: number,
  change: (seconds: number) => number,
): OptimizerInput {
  const { fleet } = input.state;
  const networkSeconds = fleet.networkSeconds.map((row, at) =>
    at === frontend ? row.with(engine, change(row[engine]!)) : row,
  );
  return { ...input, state: { ...input.state, fleet: { ...fleet, networkSeconds } } };
}

/** With so many times the replicas and the demand. */
export function timesLarger(input: OptimizerInput, factor: number): OptimizerInput {
  const { state } = input;
  return {
    ...input,
    state: {
      ...state,
      engines: state.engines.map((engine) => ({
        ...engine,
        replicas: Array.from({ length: factor }, () => engine.replicas).flat(),
      })),
      demands: state.demands.map((demand) => ({
        ...demand,
        requestsPerSecond: demand.requestsPerSecond * factor,
      })),
    },
  };
}

/** The same with all lists in another order. */
export function shuffled(input: OptimizerInput, seed: number): OptimizerInput {
  const random = randomNumbers(seed);
  const mix = <T>(items: readonly T[]): { items: T[]; order: number[] } => {
    const order = items.map((_, at) => at);
    for (let at = order.length - 1; at > 0; at--) {
      const other = Math.floor(random() * (at + 1));
      [order[at], order[other]] = [order[other]!, order[at]!];
    }
    return { items: order.map((at) => items[at]!), order };
  };
  const { state } = input;
  const frontends = mix(state.fleet.frontends);
  const engines = mix(state.fleet.engines);
  return {
    ...input,
    profiles: new Map(mix([...input.profiles]).items),
    state: {
      ...state,
      fleet: {
        frontends: frontends.items,
        engines: engines.items,
        pools: mix(state.fleet.pools).items.map((pool) => ({
          ...pool,
          engineIds: mix(pool.engineIds).items,
        })),
        networkSeconds: frontends.order.map((row) =>
          engines.order.map((column) => state.fleet.networkSeconds[row]![column]!),
        ),
      },
      engines: engines.order.map((at) => state.engines[at]!),
      demands: mix(state.demands).items,
    },
  };
}
