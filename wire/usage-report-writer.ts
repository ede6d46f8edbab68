import * as L from './layout.js';
import type { UsageReport } from './usage-report.js';

/** The bytes that a filter sends for these counters; tests and simulations stand in for filters with it. */
export function encodeUsageReport(report: UsageReport): Uint8Array {
  const size = report.vms.reduce(
    (sum, vm) =>
      sum + L.VM_HEADER_SIZE + vm.pools.length * L.POOL_USAGE_SIZE + vm.engines.length * L.ENGINE_USAGE_SIZE,
    L.REPORT_HEADER_SIZE,
  );
  const out = new DataView(new ArrayBuffer(size));
  const counter = (at: number, value: number) => out.setBigUint64(at, BigInt(value), true);
  out.setUint32(0, L.REPORT_MAGIC, true);
  out.setUint32(4, L.REPORT_FORMAT, true);
  out.setUint32(L.REPORT_VMS, report.vms.length, true);
  let at = L.REPORT_HEADER_SIZE;
  for (const vm of report.vms) {
    out.setBigUint64(at + L.VM_INCARNATION, vm.incarnation, true);
    out.setUint32(at + L.VM_POOLS, vm.pools.length, true);
    out.setUint32(at + L.VM_ENGINES, vm.engines.length, true);
    at += L.VM_HEADER_SIZE;
    for (const row of vm.pools) {
      out.setBigUint64(at + L.POOL_USAGE_POOL, row.pool, true);
      counter(at + L.POOL_USAGE_OFFERED, row.offered);
      counter(at + L.POOL_USAGE_CLIENT_RETRIES, row.clientRetries);
      counter(at + L.POOL_USAGE_SHED, row.shed);
      counter(at + L.POOL_USAGE_UNAVAILABLE, row.unavailable);
      counter(at + L.POOL_USAGE_WITHOUT_KEY, row.withoutKey);
      at += L.POOL_USAGE_SIZE;
    }
    for (const row of vm.engines) {
      out.setBigUint64(at + L.ENGINE_USAGE_POOL, row.pool, true);
      out.setBigUint64(at + L.ENGINE_USAGE_ENGINE, row.engine, true);
      counter(at + L.ENGINE_USAGE_PLANNED, row.planned);
      counter(at + L.ENGINE_USAGE_DIVERTED, row.diverted);
      counter(at + L.ENGINE_USAGE_ENDED, row.ended);
      counter(at + L.ENGINE_USAGE_FAILURES, row.failures);
      counter(at + L.ENGINE_USAGE_STATUS_2XX, row.status2xx);
      counter(at + L.ENGINE_USAGE_STATUS_4XX, row.status4xx);
      counter(at + L.ENGINE_USAGE_STATUS_5XX, row.status5xx);
      counter(at + L.ENGINE_USAGE_NO_RESPONSE, row.noResponse);
      counter(at + L.ENGINE_USAGE_RETRIES, row.retries);
      out.setFloat64(at + L.ENGINE_USAGE_FIRST_BYTE_SUM, row.firstByteSecondsSum, true);
      counter(at + L.ENGINE_USAGE_FIRST_BYTE_COUNT, row.firstByteCount);
      at += L.ENGINE_USAGE_SIZE;
    }
  }
  return new Uint8Array(out.buffer);
}
