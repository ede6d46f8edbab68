import type { Config } from '../xds-server/config/config.js';
import type { EngineParameters } from './engine/parameters.js';
import type { ConversationSource } from './workloads/conversation-source.js';
import type { RateCurve } from './workloads/rate-curve.js';

/** A world to try policies in. Times are seconds from its beginning. */
export interface Scenario {
  readonly id: string;
  /** One sentence: what happens, and what it is to show. */
  readonly about: string;
  readonly frontends: readonly ScenarioFrontend[];
  /** One for each replica. */
  readonly engines: readonly ScenarioEngine[];
  /** Round trips in milliseconds, `[frontend][engine]`; Infinity where there is no way. */
  readonly rttMs: readonly (readonly number[])[];
  /** Kinds of requests that differ in who may serve them and in priority; default: one, that everybody may serve. */
  readonly classes?: readonly RequestClass[];
  readonly warmupSeconds: number;
  /** Measured seconds after the warm-up. */
  readonly seconds: number;
  /** Oscillation is measured from here: nothing outside changes any more, and a policy had time to settle. */
  readonly settledFrom: number;
  /** When something outside changed for the last time; absent when nothing does. */
  readonly lastChangeAt?: number;
  readonly faults: readonly Fault[];
  readonly slo: { readonly ttftSeconds: number; readonly e2eSeconds: number };
  readonly client: ClientBehaviour;
  /** Policies start without knowledge of demand or with what held before the scenario; requests/s by frontend. */
  readonly expectedRps: readonly number[];
  readonly signals: SignalTiming;
  /** The control server's configuration; default: made of the scenario, with profiles that `wardrop fit` made. */
  readonly config?: Config;
}

/** What a client does whose request is not answered, as OpenAI's SDKs do. */
export interface ClientBehaviour {
  /** It leaves when an answer is not complete after this time. */
  readonly timeoutSeconds: number;
  /** Further tries, after 0.5 s doubled each time up to 8 s, less up to a quarter, or when the answer says. */
  readonly retries: number;
}

/** When policies hear of what happens; the same for all. */
export interface SignalTiming {
  readonly periodSeconds: number;
  /** From the end of a period until what follows from it is in force everywhere. */
  readonly delaySeconds: number;
}

export interface ScenarioFrontend {
  readonly id: string;
  readonly region: string;
  readonly source: ConversationSource;
  readonly rate: RateCurve;
  /** Shares of its conversations by class; default: all of the first. */
  readonly classShares?: readonly number[];
  /** Proxies that share its requests, each knowing its own alone; default: 1. */
  readonly envoys?: number;
}

/** The frontend of each Envoy. */
export function envoysOf({ frontends }: Pick<Scenario, 'frontends'>): number[] {
  return frontends.flatMap(({ envoys = 1 }, frontend) => Array.from({ length: envoys }, () => frontend));
}

/** One replica of an engine. */
export interface ScenarioEngine {
  /** Unique; the engine's id where it has one replica. */
  readonly id: string;
  readonly engineId: string;
  readonly region: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly parameters: EngineParameters;
  /** Id of the profile that `wardrop fit` made of a benchmark of it. */
  readonly profile: string;
  /** Operators take it for this many times as slow as its benchmark says; default 1. */
  readonly believedSlowness?: number;
  /** What an operator takes for its capacity: requests/s of these conversations in a benchmark. */
  readonly nominalRps: number;
  /** Default: made up. */
  readonly address?: string;
}

/** What shows that a request is of a kind. */
export interface Sign {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface RequestClass {
  readonly id: string;
  /** What its requests carry besides the conversation's key. */
  readonly headers: Readonly<Record<string, string>>;
  /** By engine, whether it may serve it. */
  readonly eligible: readonly boolean[];
  /** Name in the configuration, header that tells it, and labels that an engine must have for it. */
  readonly need?: Sign & { readonly labels: Readonly<Record<string, string>> };
  /** Absent for 0. */
  readonly priority?: Sign & { readonly value: number };
}

/** What goes wrong from a time until another. */
export type Fault = { readonly from: number; readonly until: number } & (
  | { readonly kind: 'engine-down'; readonly engine: string }
  | { readonly kind: 'slow-engine'; readonly engine: string; readonly slowness: number }
  /** No packet crosses the border of the region, in either direction; the control server is outside. */
  | { readonly kind: 'region-cut'; readonly region: string }
  /** Nothing is heard of and nothing comes from the control server; frontends go on with what they have. */
  | { readonly kind: 'control-down' }
  /** The same for one frontend; its requests go on. */
  | { readonly kind: 'frontend-silent'; readonly frontend: string }
  /** Signals come this much later. */
  | { readonly kind: 'stale-signals'; readonly extraDelaySeconds: number }
  /** All signals stand still; what they showed before is shown again. */
  | { readonly kind: 'frozen-signals' }
);

export const DEFAULT_CLIENT: ClientBehaviour = { timeoutSeconds: 10, retries: 2 };
