import { Random } from '../random.js';
import type { Scenario } from '../scenario.js';
import { choicesOf, inTurn, readyOf, rowOf } from './choices.js';
import type { LocalView, PolicyFactory, RoutedRequest } from './policy.js';

/**
 * Power of two choices (Mitzenmacher 2001) as in Envoy's `least_request`: two random engines, the one with fewer of
 * this Envoy's own requests in flight for its nominal capacity.
 */
export const leastRequest: PolicyFactory = ({ scenario, seed, local }) => {
  const choice = new TwoChoices(scenario, local, new Random(seed, 'least-request'));
  return {
    id: 'least-request',
    decide: (request) => choice.pick(request),
  };
};

export class TwoChoices {
  readonly #capacities: readonly number[];
  readonly #choices: readonly (readonly (readonly number[])[])[];
  readonly #local: LocalView;
  readonly #random: Random;

  constructor(scenario: Scenario, local: LocalView, random: Random) {
    this.#capacities = scenario.engines.map(({ nominalRps }) => nominalRps);
    this.#choices = choicesOf(scenario);
    this.#local = local;
    this.#random = random;
  }

  /** The better one first, after these. */
  pick(request: RoutedRequest, before: readonly number[] = []): readonly number[] {
    const { frontend, envoy } = request;
    const choices = rowOf(this.#choices, request);
    const readiness = this.#local.ready[frontend]!;
    const ready = readyOf(choices, readiness);
    const engines = ready.length > 0 ? ready : choices;
    if (engines.length === 1) return inTurn([...before, ...engines, ...choices], readiness);
    const at = this.#random.integer({ min: 0, max: engines.length - 1 });
    const other = (at + this.#random.integer({ min: 1, max: engines.length - 1 })) % engines.length;
    const [a, b] = [engines[at]!, engines[other]!];
    const two = this.#load(envoy, a) <= this.#load(envoy, b) ? [a, b] : [b, a];
    return inTurn([...before, ...two, ...choices], readiness);
  }

  #load(envoy: number, engine: number): number {
    return (this.#local.inFlight[envoy]![engine]! + 1) / this.#capacities[engine]!;
  }
}
