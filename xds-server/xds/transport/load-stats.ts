import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import type { EngineLoadCounts, PoolLoadCounts } from '../../fleet/load-report.js';
import type {
  ClusterStats,
  UpstreamLocalityStats,
} from '../../gen/envoy/config/endpoint/v3/load_report_pb.js';
import {
  LoadStatsRequestSchema,
  LoadStatsResponseSchema,
} from '../../gen/envoy/service/load_stats/v3/lrs_pb.js';
import type { LoadReportRequest } from '../protocol/load-report-session.js';
import { duration } from '../resources/pack.js';
import { identityOf } from './codec.js';

export const LOAD_STATS_PATH = '/envoy.service.load_stats.v3.LoadReportingService/StreamLoadStats';

/** As often as filters report; a node that is silent for much longer counts as lost. */
const INTERVAL_MS = 1_000;

export function decodeLoadReport(bytes: Uint8Array): LoadReportRequest {
  const { node, clusterStats } = fromBinary(LoadStatsRequestSchema, bytes);
  return {
    ...(node !== undefined && { node: identityOf(node) }),
    report: clusterStats.map(poolOf),
  };
}

/** Asks a client for reports on these clusters. */
export function encodeLoadStatsResponse(clusters: readonly string[]): Buffer {
  const response = { clusters: [...clusters], loadReportingInterval: duration(INTERVAL_MS) };
  return Buffer.from(toBinary(LoadStatsResponseSchema, create(LoadStatsResponseSchema, response)));
}

/** Clusters are named by pools. */
function poolOf({ clusterName, totalDroppedRequests, upstreamLocalityStats }: ClusterStats): PoolLoadCounts {
  return {
    poolId: clusterName,
    dropped: Number(totalDroppedRequests),
    engines: upstreamLocalityStats.map(engineOf),
  };
}

/** Localities are named by engines; one that is not ours only counts for its pool. */
function engineOf(stats: UpstreamLocalityStats): EngineLoadCounts {
  return {
    engineId: stats.locality?.subZone ?? '',
    issued: Number(stats.totalIssuedRequests),
    succeeded: Number(stats.totalSuccessfulRequests),
    failed: Number(stats.totalErrorRequests),
    inProgress: Number(stats.totalRequestsInProgress),
  };
}
