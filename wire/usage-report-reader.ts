import { WardropError } from '../xds-server/errors.js';
import * as L from './layout.js';
import type { EngineUsage, PoolUsage, UsageReport, VmUsage } from './usage-report.js';

/** Reads the body of a sync call. Throws WARDROP_REPORT_INVALID for anything that no filter writes. */
export function decodeUsageReport(bytes: Uint8Array): UsageReport {
  const data = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  check(data.byteLength >= L.REPORT_HEADER_SIZE, 'is shorter than its header');
  check(data.getUint32(0, true) === L.REPORT_MAGIC, 'does not begin with the magic number');
  const format = data.getUint32(4, true);
  check(format === L.REPORT_FORMAT, `has format ${format} instead of ${L.REPORT_FORMAT}`);
  const count = data.getUint32(L.REPORT_VMS, true);

  const vms: VmUsage[] = [];
  let at = L.REPORT_HEADER_SIZE;
  for (let index = 0; index < count; index++) {
    check(data.byteLength - at >= L.VM_HEADER_SIZE, 'ends within a block');
    const pools = data.getUint32(at + L.VM_POOLS, true);
    const engines = data.getUint32(at + L.VM_ENGINES, true);
    const poolsAt = at + L.VM_HEADER_SIZE;
    const enginesAt = poolsAt + pools * L.POOL_USAGE_SIZE;
    const end = enginesAt + engines * L.ENGINE_USAGE_SIZE;
    check(end <= data.byteLength, 'ends within a block');
    vms.push({
      incarnation: data.getBigUint64(at + L.VM_INCARNATION, true),
      pools: Array.from({ length: pools }, (_, row) => poolUsage(data, poolsAt + row * L.POOL_USAGE_SIZE)),
      engines: Array.from({ length: engines }, (_, row) =>
        engineUsage(data, enginesAt + row * L.ENGINE_USAGE_SIZE),
      ),
    });
    at = end;
  }
  check(at === data.byteLength, 'goes on after its last block');
  return { vms };
}

function poolUsage(data: DataView, at: number): PoolUsage {
  return {
    pool: data.getBigUint64(at + L.POOL_USAGE_POOL, true),
    offered: counter(data, at + L.POOL_USAGE_OFFERED),
    clientRetries: counter(data, at + L.POOL_USAGE_CLIENT_RETRIES),
    shed: counter(data, at + L.POOL_USAGE_SHED),
    unavailable: counter(data, at + L.POOL_USAGE_UNAVAILABLE),
    withoutKey: counter(data, at + L.POOL_USAGE_WITHOUT_KEY),
  };
}

function engineUsage(data: DataView, at: number): EngineUsage {
  const firstByteSecondsSum = data.getFloat64(at + L.ENGINE_USAGE_FIRST_BYTE_SUM, true);
  check(firstByteSecondsSum >= 0 && firstByteSecondsSum < Infinity, 'has a sum of seconds out of range');
  return {
    pool: data.getBigUint64(at + L.ENGINE_USAGE_POOL, true),
    engine: data.getBigUint64(at + L.ENGINE_USAGE_ENGINE, true),
    planned: counter(data, at + L.ENGINE_USAGE_PLANNED),
    diverted: counter(data, at + L.ENGINE_USAGE_DIVERTED),
    ended: counter(data, at + L.ENGINE_USAGE_ENDED),
    failures: counter(data, at + L.ENGINE_USAGE_FAILURES),
    status2xx: counter(data, at + L.ENGINE_USAGE_STATUS_2XX),
    status4xx: counter(data, at + L.ENGINE_USAGE_STATUS_4XX),
    status5xx: counter(data, at + L.ENGINE_USAGE_STATUS_5XX),
    noResponse: counter(data, at + L.ENGINE_USAGE_NO_RESPONSE),
    retries: counter(data, at + L.ENGINE_USAGE_RETRIES),
    firstByteSecondsSum,
    firstByteCount: counter(data, at + L.ENGINE_USAGE_FIRST_BYTE_COUNT),
  };
}

function counter(data: DataView, at: number): number {
  const value = Number(data.getBigUint64(at, true));
  check(value <= Number.MAX_SAFE_INTEGER, 'has a counter out of range');
  return value;
}

function check(holds: boolean, complaint: string): void {
  if (!holds) throw new WardropError('WARDROP_REPORT_INVALID', `usage report ${complaint}`);
}
