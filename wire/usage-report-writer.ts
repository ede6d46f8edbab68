import * as L from './layout.js';
import type { UsageReport, VmUsage } from './usage-report.js';
import { type Field, sectionNames, sections } from './usage-report-rows.js';

/** The bytes that a filter sends for these counters; tests and simulations stand in for filters with it. */
export function encodeUsageReport(report: UsageReport): Uint8Array {
  const { displaced = [] } = report;
  const size = report.vms.reduce(
    (total, vm) => total + blockSize(vm),
    L.REPORT_HEADER_SIZE + displaced.length * 8,
  );
  const out = new DataView(new ArrayBuffer(size));
  out.setUint32(0, L.REPORT_MAGIC, true);
  out.setUint32(4, L.REPORT_FORMAT, true);
  out.setUint32(L.REPORT_VMS, report.vms.length, true);
  out.setUint32(L.REPORT_DISPLACED, displaced.length, true);
  let at = L.REPORT_HEADER_SIZE;
  for (const vm of report.vms) {
    out.setBigUint64(at + L.VM_INCARNATION, vm.incarnation, true);
    out.setBigUint64(at + L.VM_SEQUENCE, BigInt(vm.sequence), true);
    out.setUint32(at + L.VM_TURN_LEVEL, vm.turnLevel, true);
    for (const name of sectionNames) out.setUint32(at + sections[name].count, vm[name].length, true);
    at += L.VM_HEADER_SIZE;
    for (const name of sectionNames) {
      const { size: rowSize, fields } = sections[name].row;
      for (const row of vm[name]) {
        for (const [field, layout] of Object.entries<Field>(fields)) {
          writeField(out, at + layout.at, layout, (row as unknown as Record<string, unknown>)[field]);
        }
        at += rowSize;
      }
    }
  }
  for (const [index, hash] of displaced.entries()) out.setBigUint64(at + index * 8, hash, true);
  return new Uint8Array(out.buffer);
}

function blockSize(vm: VmUsage): number {
  return sectionNames.reduce(
    (total, name) => total + vm[name].length * sections[name].row.size,
    L.VM_HEADER_SIZE,
  );
}

function writeField(out: DataView, at: number, { kind }: Field, value: unknown): void {
  switch (kind) {
    case 'hash':
      out.setBigUint64(at, value as bigint, true);
      return;
    case 'integer':
      out.setBigInt64(at, BigInt(value as number), true);
      return;
    case 'counter':
      writeCounter(out, at, value as number);
      return;
    case 'sum':
      out.setFloat64(at, value as number, true);
      return;
    case 'counters':
      for (const [index, each] of (value as number[]).entries()) {
        writeCounter(out, at + index * 8, each);
      }
      return;
    case 'sums':
      for (const [index, each] of (value as number[]).entries()) out.setFloat64(at + index * 8, each, true);
  }
}

/** As `setBigUint64` of a whole number, in a fraction of the time. */
function writeCounter(out: DataView, at: number, value: number): void {
  out.setUint32(at, value % 2 ** 32, true);
  out.setUint32(at + 4, value / 2 ** 32, true);
}
