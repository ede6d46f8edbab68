import type { Random } from '../../simulator/random.js';

/** What happens to the weights in one step. */
type Step = 'drift' | 'shift' | 'away';

/**
 * Random steps of one row's weights, as a fleet sees them: nine in twenty are a drift of all engines (demand moves), as
 * many a change of one engine by up to a factor of two at the cost of the others (capacity, a penalty), one in ten an
 * engine that leaves or the one that left coming back. Weights add up to 1.
 */
export class WeightSteps {
  readonly #random: Random;
  readonly #logs: number[];
  #away: number | undefined;

  constructor(engines: number, random: Random) {
    this.#random = random;
    this.#logs = Array.from({ length: engines }, () => this.#spread(0.5));
  }

  weights(): number[] {
    const raw = this.#logs.map((log, engine) => (engine === this.#away ? 0 : Math.exp(log)));
    const sum = raw.reduce((partial, weight) => partial + weight, 0);
    return raw.map((weight) => weight / sum);
  }

  advance(): void {
    const step = this.#kind();
    if (step === 'drift') {
      this.#logs.forEach((log, engine) => {
        this.#logs[engine] = 0.98 * log + this.#spread(0.15);
      });
    } else if (step === 'shift') {
      const engine = this.#random.integer({ min: 0, max: this.#logs.length - 1 });
      this.#logs[engine] = 0.9 * this.#logs[engine]! + this.#spread(Math.LN2);
    } else {
      this.#away =
        this.#away === undefined ? this.#random.integer({ min: 0, max: this.#logs.length - 1 }) : undefined;
    }
  }

  #kind(): Step {
    const draw = this.#random.unit();
    if (draw < 0.45) return 'drift';
    return draw < 0.9 ? 'shift' : 'away';
  }

  #spread(half: number): number {
    return this.#random.between({ min: -half, max: half });
  }
}
