import type { SignalName } from '../../fleet/fleet.js';
import type { Selector } from '../../fleet/metric-selector.js';
import type { SignalMapping } from './metric-names.js';
import { MOST_SAMPLES, readSamples, type Sample } from './metrics-text.js';

/** What a page says about one signal. */
export type PageValue =
  | {
      readonly value: number;
      /** Name of the metric that it was read from. */
      readonly source: string;
    }
  /**
   * `missing`: no known name is there; `invalid`: it is no number that the signal can have; `crowded`: the page has more
   * series than are read.
   */
  | { readonly problem: 'missing' | 'invalid' | 'crowded' };

export type PageReading = ReadonlyMap<SignalName, PageValue>;

interface Rule {
  /** How the series of several data-parallel ranks or models become one value. */
  readonly combine: 'sum' | 'mean';
  readonly largest: number;
}

const COUNTER: Rule = { combine: 'sum', largest: Number.MAX_SAFE_INTEGER };

const RULES: Readonly<Record<SignalName, Rule>> = {
  running: { combine: 'sum', largest: 1e9 },
  waiting: { combine: 'sum', largest: 1e9 },
  kvUse: { combine: 'mean', largest: 1 },
  prefixHits: COUNTER,
  prefixQueries: COUNTER,
  generatedTokens: COUNTER,
  firstTokenSeconds: COUNTER,
  firstTokens: COUNTER,
  tokenGapSeconds: COUNTER,
  tokenGaps: COUNTER,
};

/** What rounding may add to a value that has a largest one. */
const ROUNDING = 1.001;

/** Ranks within one copy of the model all describe the same requests; ranks of other labels have requests of their own. */
const SHARED_RANKS: ReadonlySet<string> = new Set(['tp_rank', 'pp_rank', 'moe_ep_rank']);

/** Reads the pages of one kind of engine. */
export class PageReader {
  readonly #mapping: SignalMapping;
  readonly #names: ReadonlySet<string>;

  constructor(mapping: SignalMapping) {
    this.#mapping = mapping;
    this.#names = new Set([...mapping.values()].flatMap((selectors) => selectors.map(({ name }) => name)));
  }

  /** Every signal of the mapping, in its order. What is not on the page is missing, never 0. */
  read(text: string): PageReading {
    const samples = readSamples(text, this.#names);
    const isCrowded = samples.length > MOST_SAMPLES;
    return new Map(
      [...this.#mapping].map(([signal, selectors]) => [
        signal,
        isCrowded ? { problem: 'crowded' } : firstValid(samples, selectors, RULES[signal]),
      ]),
    );
  }
}

function firstValid(samples: readonly Sample[], selectors: readonly Selector[], rule: Rule): PageValue {
  let isInvalid = false;
  for (const { name, labels } of selectors) {
    const found = samples.filter((sample) => sample.name === name && carries(sample, labels));
    const values = scheduled(withoutParts(found));
    if (values.length === 0) continue;
    // A sum without one of its terms would be a wrong one.
    if (values.every((value) => value >= 0 && value <= rule.largest * ROUNDING)) {
      const sum = values.reduce((a, b) => a + b);
      const value = rule.combine === 'sum' ? sum : sum / values.length;
      return { value: Math.min(value, rule.largest), source: name };
    }
    isInvalid = true;
  }
  return { problem: isInvalid ? 'invalid' : 'missing' };
}

function carries(sample: Sample, labels: ReadonlyMap<string, string>): boolean {
  return [...labels].every(([name, value]) => sample.labels.get(name) === value);
}

/**
 * SGLang that schedules by priority gives the number of requests of each priority and, under an empty one, of all: parts of
 * that are not counted again.
 */
function withoutParts(samples: readonly Sample[]): readonly Sample[] {
  const isTotal = ({ labels }: Sample) => labels.get('priority') === '';
  if (!samples.some(isTotal)) return samples;
  return samples.filter((sample) => isTotal(sample) || !sample.labels.has('priority'));
}

/** One value for each scheduler: of a series that is there twice the last one, of ranks that share requests the largest. */
function scheduled(samples: readonly Sample[]): readonly number[] {
  const series = new Map<string, { readonly scheduler: string; readonly value: number }>();
  for (const { labels, value } of samples) {
    const parts = [...labels].map(([name, text]) => JSON.stringify([name, text])).sort();
    const own = parts.filter((part) => !SHARED_RANKS.has((JSON.parse(part) as [string])[0]));
    series.set(parts.join(), { scheduler: own.join(), value });
  }
  const values = new Map<string, number>();
  for (const { scheduler, value } of series.values()) {
    values.set(scheduler, Math.max(values.get(scheduler) ?? Number.NEGATIVE_INFINITY, value));
  }
  return [...values.values()];
}
