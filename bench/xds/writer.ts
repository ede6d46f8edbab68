import { HealthStatus } from '../../xds-server/gen/envoy/config/core/v3/health_check_pb.js';
import { encodeAssignment, type Locality } from '../../xds-server/xds/resources/assignment-writer.js';
import { encodeGenerally } from '../../xds-server/xds/resources/testing/general-encoder.js';
import { fleetOf } from './fleet.js';

export interface WriterResult {
  readonly writerMs: number;
  readonly protobufMs: number;
  readonly speedup: number;
}

/** CPU to encode an assignment of 1000 endpoints with new weights: by the cached writer, and by protobuf-es. */
export function measureWriter(rounds: number): WriterResult {
  const { engines } = fleetOf({ frontends: 1, clusters: 1, endpoints: 1000 });
  const localities = (turn: number): Locality[] =>
    engines.map((engine, index) => ({
      engine,
      priority: 0,
      hostWeight: 1_000_000 + turn * 100 + index,
      health: engine.endpoints.map(() => HealthStatus.HEALTHY),
    }));
  const general = (turn: number) => encodeGenerally('cluster-0', localities(turn));
  const cached = (turn: number) => encodeAssignment('cluster-0', localities(turn));
  if (Buffer.compare(general(1), cached(1)) !== 0) throw new Error('the two encoders differ');
  for (let i = 0; i < rounds; i++) {
    general(i);
    cached(i);
  }
  const writerMs = cpuMsPer(rounds * 5, cached);
  const protobufMs = cpuMsPer(rounds, general);
  return { writerMs, protobufMs, speedup: protobufMs / writerMs };
}

function cpuMsPer(times: number, work: (turn: number) => unknown): number {
  const before = process.cpuUsage();
  for (let i = 0; i < times; i++) work(i);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / times;
}
