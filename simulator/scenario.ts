import type { Config } from '../xds-server/config/config.js';
import { type WorkModel, workSeconds } from '../xds-server/profiles/profile.js';
import type { EngineParameters } from './engine/parameters.js';
import type { ConversationSource } from './workloads/conversation-source.js';
import type { RateCurve } from './workloads/rate-curve.js';

/** A world to try policies in. Times are seconds from its beginning. */
export interface Scenario {
  readonly id: string;
  /** One sentence: what happens, and what it is to show. */
  readonly about: string;
  /** One sentence: what of the fleet is not simulated. */
  readonly leftOut?: string | undefined;
  readonly frontends: readonly ScenarioFrontend[];
  /** One for each replica. */
  readonly engines: readonly ScenarioEngine[];
  /** Round trips in milliseconds, `[frontend][engine]`; Infinity where there is no way. */
  readonly rttMs: readonly (readonly number[])[];
  /** Each a model, or a part of its requests, that certain engines may serve. */
  readonly pools: readonly ScenarioPool[];
  /** Kinds of requests that differ in pool and priority. */
  readonly classes: readonly RequestClass[];
  readonly warmupSeconds: number;
  /** Measured seconds after the warm-up. */
  readonly seconds: number;
  /** Oscillation is measured from here: nothing outside changes any more, and a policy had time to settle. */
  readonly settledFrom: number;
  /** When something outside changed for the last time; absent when nothing does. */
  readonly lastChangeAt?: number;
  readonly faults: readonly Fault[];
  readonly slo: Slo;
  readonly client: ClientBehaviour;
  readonly signals: SignalTiming;
  /** The control server's configuration; default: made of the scenario, with profiles that `wardrop fit` made. */
  readonly config?: Config;
}

/** What a request must meet to count for goodput. */
export interface Slo {
  readonly ttftSeconds: number;
  readonly e2eSeconds: number;
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
  readonly demands: readonly ScenarioDemand[];
  /** Proxies that share its requests, each knowing its own alone; default: 1. */
  readonly envoys?: number;
}

/** Conversations of one kind that come to a frontend. */
export interface ScenarioDemand {
  /** Unique; its conversations are named after it, and drawn by it. */
  readonly id: string;
  readonly source: ConversationSource;
  /** First tries of clients. */
  readonly rate: RateCurve;
  /** Requests/s that policies start with: what held before the scenario. */
  readonly expectedRps: number;
  /** Shares of its conversations by class. */
  readonly classShares: readonly number[];
}

/** The frontend of each Envoy. */
export function envoysOf({ frontends }: Pick<Scenario, 'frontends'>): number[] {
  return frontends.flatMap(({ envoys = 1 }, frontend) => Array.from({ length: envoys }, () => frontend));
}

/** One replica of an engine. */
export interface ScenarioEngine {
  /** Unique, also among engines: the engine's id where it has one replica. */
  readonly id: string;
  readonly engineId: string;
  readonly region: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly parameters: EngineParameters;
  /** Id of the profile that `wardrop fit` made of a benchmark of it. */
  readonly profile: string;
  /** What requests take of it, as its benchmark says. */
  readonly work: WorkModel;
  /** Operators take it for this many times as slow as its benchmark says; default 1. */
  readonly believedSlowness?: number;
  /** What operators take for its capacity, rightly or not: requests/s of the mean size of all. */
  readonly nominalRps: number;
  /** Default: made up. */
  readonly address?: string;
}

/** What shows that a request is of a kind. */
export interface Sign {
  readonly name: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ScenarioPool {
  /** As in the scenario's configuration, if it has one. */
  readonly id: string;
  /** By engine, whether it may serve it. */
  readonly eligible: readonly boolean[];
  /** Default: the scenario's. */
  readonly slo?: Slo;
}

/** A frontend and a pool, which is what weights are for. */
export interface ScenarioRow {
  readonly frontend: number;
  readonly pool: number;
}

/** By frontend, then pool. */
export function rowsOf({ frontends, pools }: Pick<Scenario, 'frontends' | 'pools'>): ScenarioRow[] {
  return frontends.flatMap((_, frontend) => pools.map((_, pool) => ({ frontend, pool })));
}

export interface RequestClass {
  readonly id: string;
  /** What its requests carry besides the conversation's key. */
  readonly headers: Readonly<Record<string, string>>;
  /** Index of its pool. */
  readonly pool: number;
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

/** Everybody may serve everything. */
export function onePool(engines: readonly ScenarioEngine[]): Pick<Scenario, 'pools' | 'classes'> {
  return {
    pools: [{ id: 'all', eligible: engines.map(() => true) }],
    classes: [{ id: 'all', headers: {}, pool: 0 }],
  };
}

/** Requests/s that policies start with, `[frontend][pool]`. */
export function expectedRpsOf({ frontends, pools, classes }: Scenario): number[][] {
  const first = classes[0]!.pool;
  return frontends.map(({ demands }) => {
    const rates = pools.map(() => 0);
    for (const { expectedRps, classShares } of demands) {
      // What is of no other pool is of the first class's: all of it where there is one, however shares are rounded.
      let rest = expectedRps;
      classes.forEach(({ pool }, index) => {
        if (pool === first) return;
        rates[pool]! += expectedRps * classShares[index]!;
        rest -= expectedRps * classShares[index]!;
      });
      rates[first]! += rest;
    }
    return rates;
  });
}

/** Ids of an engine's replicas; ids of engines have no slash. */
export function replicaIds(engineId: string, replicas: number): string[] {
  return replicas === 1
    ? [engineId]
    : Array.from({ length: replicas }, (_, replica) => `${engineId}/${replica}`);
}

/** Replica-seconds of a request, as benchmarks say, `[frontend][pool][engine]`; 0 where nobody asks for the pool. */
export function workOf({ frontends, pools, classes, engines }: Scenario): number[][][] {
  return frontends.map(({ demands }) =>
    pools.map((_, pool) => {
      const demand = demands.find(({ classShares }) =>
        classes.some((each, index) => each.pool === pool && classShares[index]! > 0),
      );
      return engines.map((engine) =>
        demand === undefined ? 0 : workSeconds(engine, demand.source.expected),
      );
    }),
  );
}

export const DEFAULT_SLO: Slo = { ttftSeconds: 0.5, e2eSeconds: 2 };

export const DEFAULT_CLIENT: ClientBehaviour = { timeoutSeconds: 10, retries: 2 };
