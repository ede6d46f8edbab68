import type { Scenario } from '../scenario.js';

/** A request at its frontend. */
export interface RoutedRequest {
  readonly frontend: number;
  readonly pool: number;
  /** The Envoy of the frontend that it came to, counted over all frontends. */
  readonly envoy: number;
  readonly conversation: Conversation;
  readonly promptTokens: number;
  /** What will be answered, of which a policy learns by and by. */
  readonly turn: { readonly index: number; readonly streamed: boolean; readonly outputTokens: number };
  /** Prompt tokens that the engine found in its cache; known with the last token of the answer. */
  readonly cachedTokens: number;
  /** How often the client has come back with it. */
  readonly clientRetries: number;
  /** Whatever the policy wants to keep with it. */
  tag?: unknown;
}

/** What all requests of a conversation share. */
export interface Conversation {
  readonly id: string;
  /** 32 well-mixed bits of the id. */
  readonly hash: number;
  /** Index of its class in the scenario. */
  readonly requestClass: number;
  /** Engine that served the last turn, -1 before. */
  lastEngine: number;
  /** Prompt and answer of the last turn, in tokens; 0 before. */
  lastTokens: number;
}

export interface Refusal {
  readonly refused: true;
  readonly retryAfterSeconds: number;
  readonly shouldRetry: boolean;
}

/** Engines in the order of attempts: the next one is tried where the one before cannot be reached or is full. */
export type Decision = readonly number[] | Refusal;

/** What one report period showed; the same for every policy, and only this. */
export interface Telemetry {
  readonly atSeconds: number;
  readonly engines: readonly EngineTelemetry[];
  /** Requests per second in the period, retries of clients included, `[frontend][pool]`. */
  readonly demandRps: readonly (readonly number[])[];
  /** Mean seconds to the complete answer in the period, `[frontend][pool][engine]`; NaN where there was none. */
  readonly e2eSeconds: readonly (readonly (readonly number[])[])[];
}

export interface EngineTelemetry {
  /** By health probes: two contrary results in a row change it. */
  readonly ready: boolean;
  readonly running: number;
  readonly waiting: number;
  readonly completedRps: number;
  /** Means over the period, measured at the engine; NaN without requests. */
  readonly ttftSeconds: number;
  readonly tbotSeconds: number;
}

/** What the metrics page of an engine says. */
export interface EnginePage {
  readonly waiting: number;
  /** 0..1, share of its memory for keys and values that requests hold. */
  readonly kvUse: number;
}

/** What is known at once where a request comes in. */
export interface LocalView {
  /** An Envoy's own requests in flight, `[envoy][engine]`. */
  readonly inFlight: readonly Int32Array[];
  /** Which engines the frontend's own probes hold for ready, `[frontend][engine]`. */
  readonly ready: readonly (readonly boolean[])[];
  /** What a frontend last read of each engine, `[frontend][engine]`; only for a policy with `readsPages`. */
  readonly pages: readonly (readonly EnginePage[])[];
}

/** What a control server sees and reaches; a cut may separate it from frontends and engines. */
export interface ControlView {
  /** Which engines its probes hold for ready. */
  readonly ready: readonly boolean[];
  /** Which frontends it hears of and can tell something, by frontend. */
  readonly reaches: readonly boolean[];
}

/**
 * A way to choose engines, among those that may serve a request. `decide` stands for all Envoys: it may use what its own
 * Envoy knows by itself, and what the last update brought.
 */
export interface Policy {
  readonly id: string;
  decide(request: RoutedRequest, now: number): Decision;
  /** Called at the end of each period; what it returns comes back with the update. */
  observe?(now: number): unknown;
  /** What the period showed, `delaySeconds` after its end. */
  update?(telemetry: Telemetry, now: number, observed: unknown): Promise<void> | void;
  /** The weights in force at a frontend for a pool, the same array as long as they stay; absent without weights. */
  weights?(frontend: number, pool: number): readonly number[] | undefined;
  /** A little work of the data plane, four times a second. */
  tick?(now: number): Promise<void> | void;
  /** The answer to an attempt begins at the frontend; one that is not streamed is complete with that. */
  answered?(request: RoutedRequest, engine: number, now: number, attempts: number): void;
  /** An attempt is over, however it ended. */
  ended?(request: RoutedRequest, engine: number, now: number, outcome: Outcome): void;
  /** Whether it says now that a profile of an engine is wrong; absent where it would never know. */
  readonly detectsDrift?: boolean;
  /** Engines keep nothing to themselves: a conversation's earlier turns are cached wherever it goes. */
  readonly sharesCaches?: boolean;
  /** Frontends read metrics pages themselves, twenty times a second. */
  readonly readsPages?: boolean;
  close?(): Promise<void>;
}

export type Outcome = 'answered' | 'failed' | 'timeout';

export interface PolicyContext {
  readonly scenario: Scenario;
  readonly seed: number;
  readonly local: LocalView;
  readonly control: ControlView;
}

export type PolicyFactory = (context: PolicyContext) => Promise<Policy> | Policy;
