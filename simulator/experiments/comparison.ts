import type { Measures } from '../measures/measures.js';
import type { Scenario } from '../scenario.js';
import type { Recorder } from '../virtual/recorder.js';

/** One policy in one scenario, over all seeds. */
export interface Cell {
  readonly scenario: Scenario;
  readonly policy: string;
  readonly seeds: readonly number[];
  /** By seed. */
  readonly runs: readonly Measures[];
  /** The run of the first seed, for plots. */
  readonly sample: RunSample;
}

export interface RunSample {
  readonly samples: Recorder['samples'];
  /** Seconds to the complete answer at 101 quantiles, 0 to 1. */
  readonly e2eQuantiles: readonly number[];
}

export interface Comparison {
  readonly cells: readonly Cell[];
  /** Empty where scenarios were cut short or changed. */
  readonly assertions: readonly Checked[];
  readonly cpuSeconds: number;
  readonly requests: number;
}

/** An assertion of a scenario and what came out. */
export interface Checked {
  readonly scenario: string;
  /** Such as `wardrop.meanE2eMs <= 0.5 x nearest`. */
  readonly text: string;
  /** The figure; with another policy, its ratio or difference to that one. */
  readonly value: number | null;
  /** `skipped` where one of the policies was not tried. */
  readonly result: 'holds' | 'fails' | 'skipped';
}
