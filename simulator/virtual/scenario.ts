import type { EngineParameters } from '../engine/parameters.js';
import type { ConversationSource } from '../workloads/conversation-source.js';
import type { RateCurve } from '../workloads/rate-curve.js';

/** A world to try policies in. Times are seconds from its beginning. */
export interface Scenario {
  readonly id: string;
  /** One sentence: what happens, and what it is to show. */
  readonly about: string;
  readonly frontends: readonly ScenarioFrontend[];
  readonly engines: readonly ScenarioEngine[];
  /** Round trips in milliseconds, `[frontend][engine]`. */
  readonly rttMs: readonly (readonly number[])[];
  readonly warmupSeconds: number;
  /** Measured seconds after the warm-up. */
  readonly seconds: number;
  /** Oscillation is measured from here: nothing outside changes any more, and a policy had time to settle. */
  readonly settledFrom: number;
  readonly faults: readonly Fault[];
  readonly slo: { readonly ttftSeconds: number; readonly e2eSeconds: number };
  readonly clientTimeoutSeconds: number;
  /** Policies start without knowledge of demand or with what held before the scenario; requests/s by frontend. */
  readonly expectedRps: readonly number[];
  readonly signals: SignalTiming;
}

/** When policies hear of what happens; the same for all. */
export interface SignalTiming {
  readonly periodSeconds: number;
  /** From the end of a period until what follows from it is in force everywhere. */
  readonly delaySeconds: number;
}

export interface ScenarioFrontend {
  readonly id: string;
  readonly source: ConversationSource;
  readonly rate: RateCurve;
}

/** An engine of one replica. */
export interface ScenarioEngine {
  readonly id: string;
  readonly parameters: EngineParameters;
  /** Id of the profile that `wardrop fit` made of a benchmark of it. */
  readonly profile: string;
  /** What an operator takes for its capacity: requests/s of these conversations in a benchmark. */
  readonly nominalRps: number;
}

export type Fault =
  | { readonly kind: 'engine-down'; readonly engine: string; readonly from: number; readonly until: number }
  | {
      readonly kind: 'slow-engine';
      readonly engine: string;
      readonly slowness: number;
      readonly from: number;
      readonly until: number;
    }
  /** Nothing is heard of and nothing comes from the control server; frontends go on with what they have. */
  | { readonly kind: 'control-down'; readonly from: number; readonly until: number };
