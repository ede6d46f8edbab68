import { Random } from '../random.js';
import type { LocalView, PolicyFactory, RoutedRequest } from './policy.js';

/**
 * Power of two choices (Mitzenmacher 2001) as in Envoy's `least_request`: two random engines, the one with fewer of
 * this Envoy's own requests in flight for its nominal capacity.
 */
export const leastRequest: PolicyFactory = ({ scenario, seed, local }) => {
  const random = new Random(seed, 'least-request');
  const choice = new TwoChoices(
    scenario.engines.map(({ nominalRps }) => nominalRps),
    local,
    random,
  );
  return {
    id: 'least-request',
    decide: (request) => choice.pick(request),
  };
};

export class TwoChoices {
  readonly #capacities: readonly number[];
  readonly #local: LocalView;
  readonly #random: Random;

  constructor(capacities: readonly number[], local: LocalView, random: Random) {
    this.#capacities = capacities;
    this.#local = local;
    this.#random = random;
  }

  /** The better one first. */
  pick({ frontend, envoy }: Pick<RoutedRequest, 'frontend' | 'envoy'>): number[] {
    const ready = this.#capacities.flatMap((_, engine) =>
      this.#local.ready[frontend]![engine] ? [engine] : [],
    );
    const engines = ready.length > 0 ? ready : this.#capacities.map((_, engine) => engine);
    if (engines.length === 1) return engines;
    const at = this.#random.integer({ min: 0, max: engines.length - 1 });
    const other = (at + this.#random.integer({ min: 1, max: engines.length - 1 })) % engines.length;
    const [a, b] = [engines[at]!, engines[other]!];
    return this.#load(envoy, a) <= this.#load(envoy, b) ? [a, b] : [b, a];
  }

  #load(envoy: number, engine: number): number {
    return (this.#local.inFlight[envoy]![engine]! + 1) / this.#capacities[engine]!;
  }
}
