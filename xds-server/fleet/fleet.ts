import type { ModelNeeds, Need } from './needs.js';
import type { PriorityClass } from './priority-class.js';

/**
 * The configured world: what exists, before anything is measured. Every list is sorted by id, so that the order of
 * the configuration file never reaches the optimizer.
 */

/** An address as Envoy prints it: `host:port`, IPv6 hosts in brackets. */
export type Address = string;

/** A cluster of Envoys in one place; the source of demand. */
export interface Frontend {
  readonly id: string;
  readonly region: string;
  /** Where its Envoys listen, unless an Envoy's node metadata says otherwise. */
  readonly listen: Address;
}

/** What an engine's metrics page tells about its load and its times. */
export type SignalName =
  | 'running'
  | 'waiting'
  | 'kvUse'
  | 'prefixHits'
  | 'prefixQueries'
  | 'generatedTokens'
  | 'firstTokenSeconds'
  | 'firstTokens'
  | 'tokenGapSeconds'
  | 'tokenGaps';

/** Software whose metric names are known; `custom` has only configured names. */
export type EngineKind = 'vllm' | 'sglang' | 'trtllm' | 'triton' | 'tgi' | 'custom';

/** Where and how an engine's load is read. */
export interface MetricsSource {
  readonly kind: EngineKind | 'none';
  readonly path: string;
  /** Port of the page on the replica's address; that of the endpoint when absent. */
  readonly port?: number;
  /** Metrics to read a signal from, as `name` or `name{label="value"}`, before those that the kind is known for. */
  readonly names?: Readonly<Partial<Record<SignalName, string>>>;
}

/** A group of identical replicas in one place, on one kind of hardware. */
export interface Engine {
  readonly id: string;
  readonly region: string;
  /** Exact model names served, sorted. */
  readonly models: readonly string[];
  readonly labels: Readonly<Record<string, string>>;
  /** Id of a profile. */
  readonly profile: string;
  /** One endpoint per replica, sorted. */
  readonly endpoints: readonly Address[];
  readonly metrics: MetricsSource;
  /** Path probed for readiness, such as `/health`. */
  readonly healthPath: string;
  /** Requests that a replica may have in flight; no limit when absent. */
  readonly maxInFlight?: number;
  /** Seconds in which a replica that is new or comes back takes up all of its work; none when absent. */
  readonly slowStartSeconds?: number;
}

/**
 * A model and the engines that may serve it: all need sets with the same eligible engines share one. One EDS cluster, one row of
 * weights per frontend, one partition.
 */
export interface Pool {
  /** Also the cluster name in Envoy. */
  readonly id: string;
  readonly model: string;
  /** The smallest set of needs that leads here, sorted; empty for the pool of requests without any. */
  readonly needs: readonly string[];
  /** Ids of eligible engines, sorted, never empty. */
  readonly engineIds: readonly string[];
  /** In a state: eligible engines, not in `engineIds`, that are in service only for pools that have nobody else. */
  readonly lastResortIds?: readonly string[];
}

/** A name by which requests may ask for a model. */
export interface Alias {
  readonly name: string;
  readonly model: string;
}

export interface Fleet {
  readonly frontends: readonly Frontend[];
  readonly engines: readonly Engine[];
  readonly pools: readonly Pool[];
  /** Needs that make a difference to some model, at most 64; absent when there are none. */
  readonly needs?: readonly Need[];
  /** Models that needs make a difference to. */
  readonly modelNeeds?: readonly ModelNeeds[];
  /** What gives requests a priority other than 0, the first that fits counts; absent when nothing does. */
  readonly classes?: readonly PriorityClass[];
  /** Other names of models. */
  readonly aliases?: readonly Alias[];
  /** Round trip in seconds, `[frontend index][engine index]`; Infinity where the engine cannot be reached. */
  readonly networkSeconds: readonly (readonly number[])[];
  /** Whether filters measure round trips, which then come before `networkSeconds` of the configuration. */
  readonly measuresNetwork?: boolean;
  /** Dollars that the network charges for one request, same order; absent when traffic is free. */
  readonly egressDollarsPerRequest?: readonly (readonly number[])[];
}

/** Index of the element with this id; throws when there is none, which only a programming error can cause. */
export function indexById(items: readonly { readonly id: string }[], id: string): number {
  const index = items.findIndex((item) => item.id === id);
  if (index < 0) throw new RangeError(`no element with id ${JSON.stringify(id)}`);
  return index;
}
