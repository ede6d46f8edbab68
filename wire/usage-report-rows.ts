import * as L from './layout.js';
import type {
  EngineUsage,
  LatencyUsage,
  LoadUsage,
  NetworkUsage,
  PoolUsage,
  ReplicaUsage,
  TurnUsage,
} from './usage-report.js';

/** How a field lies in a row. A list of counters or sums has a length. */
export type Field =
  | { readonly at: number; readonly kind: 'hash' | 'integer' | 'counter' | 'sum' }
  | { readonly at: number; readonly kind: 'counters' | 'sums'; readonly length: number };

export interface RowLayout<T> {
  readonly size: number;
  readonly fields: { readonly [Name in keyof T]-?: Field };
}

const hash = (at: number): Field => ({ at, kind: 'hash' });
const counter = (at: number): Field => ({ at, kind: 'counter' });
const sum = (at: number): Field => ({ at, kind: 'sum' });
const counters = (at: number, length: number): Field => ({ at, kind: 'counters', length });
const sums = (at: number, length: number): Field => ({ at, kind: 'sums', length });

export const poolRow: RowLayout<PoolUsage> = {
  size: L.POOL_USAGE_SIZE,
  fields: {
    pool: hash(L.POOL_USAGE_POOL),
    priority: { at: L.POOL_USAGE_PRIORITY, kind: 'integer' },
    offered: counter(L.POOL_USAGE_OFFERED),
    clientRetries: counter(L.POOL_USAGE_CLIENT_RETRIES),
    shed: counter(L.POOL_USAGE_SHED),
    unavailable: counter(L.POOL_USAGE_UNAVAILABLE),
    withoutKey: counter(L.POOL_USAGE_WITHOUT_KEY),
    bodiesRead: counter(L.POOL_USAGE_BODIES_READ),
    followUps: counter(L.POOL_USAGE_FOLLOW_UPS),
    promptCount: counter(L.POOL_USAGE_PROMPT_COUNT),
    promptTokens: counter(L.POOL_USAGE_PROMPT_TOKENS),
    cachedTokens: counter(L.POOL_USAGE_CACHED_TOKENS),
    cachedOfTokens: counter(L.POOL_USAGE_CACHED_OF_TOKENS),
    outputCount: counter(L.POOL_USAGE_OUTPUT_COUNT),
    outputTokens: counter(L.POOL_USAGE_OUTPUT_TOKENS),
  },
};

export const engineRow: RowLayout<EngineUsage> = {
  size: L.ENGINE_USAGE_SIZE,
  fields: {
    pool: hash(L.ENGINE_USAGE_POOL),
    engine: hash(L.ENGINE_USAGE_ENGINE),
    planned: counter(L.ENGINE_USAGE_PLANNED),
    diverted: counter(L.ENGINE_USAGE_DIVERTED),
    ended: counter(L.ENGINE_USAGE_ENDED),
    failures: counter(L.ENGINE_USAGE_FAILURES),
    status2xx: counter(L.ENGINE_USAGE_STATUS_2XX),
    status4xx: counter(L.ENGINE_USAGE_STATUS_4XX),
    status5xx: counter(L.ENGINE_USAGE_STATUS_5XX),
    noResponse: counter(L.ENGINE_USAGE_NO_RESPONSE),
    retries: counter(L.ENGINE_USAGE_RETRIES),
    stalled: counter(L.ENGINE_USAGE_STALLED),
    broken: counter(L.ENGINE_USAGE_BROKEN),
    firstTokenSecondsSum: sum(L.ENGINE_USAGE_FIRST_TOKEN_SUM),
    firstTokenCount: counter(L.ENGINE_USAGE_FIRST_TOKEN_COUNT),
    wholeSecondsSum: sum(L.ENGINE_USAGE_WHOLE_SUM),
    wholeCount: counter(L.ENGINE_USAGE_WHOLE_COUNT),
    paceSecondsSum: sum(L.ENGINE_USAGE_PACE_SUM),
    paceTokens: counter(L.ENGINE_USAGE_PACE_TOKENS),
    usageCount: counter(L.ENGINE_USAGE_USAGE_COUNT),
    promptTokens: counter(L.ENGINE_USAGE_PROMPT_TOKENS),
    cachedTokens: counter(L.ENGINE_USAGE_CACHED_TOKENS),
    cachedOfTokens: counter(L.ENGINE_USAGE_CACHED_OF_TOKENS),
    outputTokens: counter(L.ENGINE_USAGE_OUTPUT_TOKENS),
  },
};

export const latencyRow: RowLayout<LatencyUsage> = {
  size: L.LATENCY_USAGE_SIZE,
  fields: {
    engine: hash(L.LATENCY_USAGE_ENGINE),
    firstTokens: counters(L.LATENCY_USAGE_FIRST_TOKEN, L.FIRST_TOKEN_BUCKETS),
    paces: counters(L.LATENCY_USAGE_PACE, L.PACE_BUCKETS),
  },
};

const replicaRow: RowLayout<ReplicaUsage> = {
  size: L.REPLICA_USAGE_SIZE,
  fields: {
    engine: hash(L.REPLICA_USAGE_ENGINE),
    replica: hash(L.REPLICA_USAGE_REPLICA),
    sent: counter(L.REPLICA_USAGE_SENT),
    ended: counter(L.REPLICA_USAGE_ENDED),
  },
};

const loadRow: RowLayout<LoadUsage> = {
  size: L.LOAD_USAGE_SIZE,
  fields: {
    engine: hash(L.LOAD_USAGE_ENGINE),
    replica: hash(L.LOAD_USAGE_REPLICA),
    reports: counter(L.LOAD_USAGE_REPORTS),
    garbled: counter(L.LOAD_USAGE_GARBLED),
    sums: sums(L.LOAD_USAGE_SUMS, L.LOADS),
    counts: counters(L.LOAD_USAGE_COUNTS, L.LOADS),
  },
};

const networkRow: RowLayout<NetworkUsage> = {
  size: L.NETWORK_USAGE_SIZE,
  fields: {
    engine: hash(L.NETWORK_USAGE_ENGINE),
    roundTripCount: counter(L.NETWORK_USAGE_COUNT),
    roundTripSecondsSum: sum(L.NETWORK_USAGE_SUM),
  },
};

const turnRow: RowLayout<TurnUsage> = {
  size: L.TURN_USAGE_SIZE,
  fields: {
    pool: hash(L.TURN_USAGE_POOL),
    key: hash(L.TURN_USAGE_KEY),
    turns: counter(L.TURN_USAGE_TURNS),
  },
};

/** The sections of a VM's block in their order, each with the place of its count in the block's header. */
export const sections = {
  pools: { count: L.VM_POOLS, row: poolRow },
  engines: { count: L.VM_ENGINES, row: engineRow },
  latencies: { count: L.VM_LATENCIES, row: latencyRow },
  replicas: { count: L.VM_REPLICAS, row: replicaRow },
  loads: { count: L.VM_LOADS, row: loadRow },
  networks: { count: L.VM_NETWORKS, row: networkRow },
  turns: { count: L.VM_TURNS, row: turnRow },
} as const;
export const sectionNames = Object.keys(sections) as (keyof typeof sections)[];
