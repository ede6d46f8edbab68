import { CHUNKS, type Measured, type Series } from './rounds.js';
import { type Estimate, estimate, median } from './statistics.js';
import type { Variant, VariantName } from './variants.js';

/** Figures of the rounds: medians, with differences taken within a round. */
export class Figures {
  readonly #measured: Measured;
  readonly #floors: ReadonlyMap<VariantName, VariantName>;

  constructor(measured: Measured, variants: readonly Variant[]) {
    this.#measured = measured;
    this.#floors = new Map(variants.map(({ name, floor }) => [name, floor]));
  }

  get names(): VariantName[] {
    return [...this.#floors.keys()];
  }

  isFloor(name: VariantName): boolean {
    return this.#floors.get(name) === name;
  }

  /** CPU per request. */
  cpuMicros(name: VariantName): Estimate {
    return this.#estimate((rounds) => middle(this.#measured.cpuMicros, name, rounds));
  }

  /** CPU per request above the floor's. */
  addedMicros(name: VariantName): Estimate {
    return this.#estimate((rounds) => this.#added(this.#measured.cpuMicros, name, rounds));
  }

  /** CPU per chunk of a streamed answer: what the request costs more than one with a whole answer, per chunk. */
  chunkMicros(name: VariantName): Estimate {
    const { streamMicros, cpuMicros } = this.#measured;
    return this.#estimate((rounds) => {
      const more = rounds.map((round) => streamMicros[name]![round]! - cpuMicros[name]![round]!);
      return median(more) / CHUNKS;
    });
  }

  hasChunks(name: VariantName): boolean {
    return this.#measured.streamMicros[name] !== undefined;
  }

  p50Micros(name: VariantName): Estimate {
    return this.#estimate((rounds) => middle(this.#measured.p50Micros, name, rounds));
  }

  addedP50Micros(name: VariantName): Estimate {
    return this.#estimate((rounds) => this.#added(this.#measured.p50Micros, name, rounds));
  }

  /** How many times the rival adds what the variant adds. */
  advantage(of: 'cpuMicros' | 'p50Micros', name: VariantName, rival: VariantName): Estimate {
    const series = this.#measured[of];
    return this.#estimate((rounds) => this.#added(series, rival, rounds) / this.#added(series, name, rounds));
  }

  #added(series: Series, name: VariantName, rounds: readonly number[]): number {
    const floor = series[this.#floors.get(name)!]!;
    return median(rounds.map((round) => series[name]![round]! - floor[round]!));
  }

  #estimate(figure: (rounds: readonly number[]) => number): Estimate {
    return estimate(this.#measured.rounds, figure);
  }
}

function middle(series: Series, name: VariantName, rounds: readonly number[]): number {
  return median(rounds.map((round) => series[name]![round]!));
}
