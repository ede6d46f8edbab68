import type { Profile, TbotCurve, TtftCurve } from '../profile.js';
import type { Capacity } from './capacity.js';
import type { Stage } from './stage.js';
import type { WorkFit } from './work.js';

/** A stage, its utilisation and, where a profile came out, what the curves say there. */
export interface FittedStage extends Stage {
  /** Offered work over capacity; Infinity when the client did not pace its requests. */
  readonly rho: number;
  readonly ttft: Fitted | undefined;
  readonly tbot: Fitted | undefined;
}

export interface Fitted {
  readonly seconds: number;
  /** Curve over measurement, minus 1. */
  readonly error: number;
  /** Whether this stage shaped the curve. */
  readonly used: boolean;
}

/**
 * Smallest and largest value of each parameter when any one stage is left out, and when the capacity of a single
 * request size is at either end of its interval.
 */
export interface ParameterRanges {
  readonly ttft: { readonly [name in keyof TtftCurve]: Range };
  readonly tbot: { readonly [name in keyof TbotCurve]: Range };
}

export interface Range {
  readonly low: number;
  readonly high: number;
}

export interface FitResult {
  readonly id: string;
  /** Undefined when the data do not carry one; the warnings say why. */
  readonly profile: Profile | undefined;
  /** One for each request size. */
  readonly capacities: readonly Capacity[];
  /** Undefined when several sizes were measured but fewer than two to the limit. */
  readonly work: WorkFit | undefined;
  /** By prompt size, output size, rate. */
  readonly stages: readonly FittedStage[];
  /** Undefined with fewer than four stages to leave one out of. */
  readonly ranges: ParameterRanges | undefined;
  readonly warnings: readonly FitWarning[];
}

/** What about the data or the fit its reader must know before trusting the profile. */
export interface FitWarning {
  readonly code: FitWarningCode;
  readonly message: string;
}

/** Stable names, in the order in which reports list them. */
export type FitWarningCode =
  | 'closed-loop'
  | 'too-few-stages'
  | 'unsaturated'
  | 'single-saturated-stage'
  | 'collapse'
  | 'short-stages'
  | 'doubled-tbot'
  | 'contradictory-tbot'
  | 'contradictory-rates'
  | 'medians'
  | 'narrow-range'
  | 'one-size'
  | 'work-misfit'
  | 'ttft-misfit'
  | 'tbot-misfit'
  | 'kappa-bound';
