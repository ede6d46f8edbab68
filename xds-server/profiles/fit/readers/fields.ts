import { WardropError } from '../../../errors.js';

export type JsonObject = Readonly<Record<string, unknown>>;

/** The error for anything wrong in a benchmark file: where, what, and what to do. */
export function invalid(place: string, problem: string, remedy: string): WardropError {
  return new WardropError('WARDROP_BENCHMARK_INVALID', `${place}: ${problem}. ${remedy}.`);
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const rerun = 'Rerun that stage or leave it out';

/** Checked access to the values of one record. Absent means missing, null or an empty cell. */
export class Fields {
  readonly place: string;
  readonly #values: JsonObject;
  /** Before names in errors. */
  readonly #prefix: string;

  constructor(place: string, values: JsonObject, prefix = '') {
    this.place = place;
    this.#values = values;
    this.#prefix = prefix;
  }

  has(name: string): boolean {
    const value = this.#values[name];
    return value !== undefined && value !== null && value !== '';
  }

  /** Names that there are, with values or without. */
  names(): readonly string[] {
    return Object.keys(this.#values);
  }

  /** A nested object. */
  child(name: string): Fields {
    const value = this.#values[name];
    if (!isObject(value)) {
      throw invalid(this.place, `${this.#prefix}${name} is missing`, 'Pass the file as the tool wrote it');
    }
    return new Fields(this.place, value, `${this.#prefix}${name}.`);
  }

  /** A finite number above 0. */
  positive(name: string, remedy = rerun): number {
    const value = this.#number(name, remedy);
    if (value <= 0) {
      throw invalid(this.place, `${this.#prefix}${name} is ${value}, expected more than 0`, remedy);
    }
    return value;
  }

  /** A finite number, 0 or more. */
  nonNegative(name: string, remedy = rerun): number {
    const value = this.#number(name, remedy);
    if (value < 0)
      throw invalid(this.place, `${this.#prefix}${name} is ${value}, expected 0 or more`, remedy);
    return value;
  }

  optionalPositive(name: string): number | undefined {
    return this.has(name) ? this.positive(name) : undefined;
  }

  /** A rate above 0; `inf`, as Python's tools write unpaced sending, is Infinity. */
  rate(name: string): number {
    const value = this.#values[name];
    return typeof value === 'string' && /^(inf|infinity)$/i.test(value) ? Infinity : this.positive(name);
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === 'string' ? value : undefined;
  }

  #number(name: string, remedy: string): number {
    if (!this.has(name)) throw invalid(this.place, `${this.#prefix}${name} is missing`, remedy);
    const value = this.#values[name];
    const number = typeof value === 'string' ? Number(value) : value;
    if (typeof number !== 'number' || !Number.isFinite(number)) {
      throw invalid(this.place, `${this.#prefix}${name} is ${JSON.stringify(value)}, not a number`, remedy);
    }
    return number;
  }
}
