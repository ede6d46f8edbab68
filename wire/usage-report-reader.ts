import { WardropError } from '../xds-server/errors.js';
import * as L from './layout.js';
import type { UsageReport, VmUsage } from './usage-report.js';
import { type Field, sectionNames, sections } from './usage-report-rows.js';

/** Rows that have all their fields already: one that gets so many of them one by one takes several times the memory. */
const blanks = new Map(sectionNames.map((name) => [name, blankRow(Object.keys(sections[name].row.fields))]));

function blankRow(names: readonly string[]): Record<string, unknown> {
  return JSON.parse(`{${names.map((name) => `${JSON.stringify(name)}: 0`).join()}}`);
}

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
    const block = at;
    at += L.VM_HEADER_SIZE;
    const rows: Record<string, unknown> = {};
    for (const name of sectionNames) {
      const { count, row } = sections[name];
      const length = data.getUint32(block + count, true);
      const fields = Object.entries<Field>(row.fields);
      const start = at;
      at += length * row.size;
      check(at <= data.byteLength, 'ends within a block');
      rows[name] = Array.from({ length }, (_, place) =>
        readRow(data, start + place * row.size, fields, blanks.get(name)!),
      );
    }
    vms.push({
      incarnation: data.getBigUint64(block + L.VM_INCARNATION, true),
      sequence: counter(data, block + L.VM_SEQUENCE),
      turnLevel: level(data, block + L.VM_TURN_LEVEL),
      ...(rows as Omit<VmUsage, 'incarnation' | 'sequence' | 'turnLevel'>),
    });
  }
  const rest = data.getUint32(L.REPORT_DISPLACED, true);
  check(data.byteLength - at >= rest * 8, 'ends within its displaced keys');
  check(data.byteLength - at === rest * 8, 'goes on after its end');
  if (rest === 0) return { vms };
  const start = at;
  return {
    vms,
    displaced: Array.from({ length: rest }, (_, index) => data.getBigUint64(start + index * 8, true)),
  };
}

function readRow(
  data: DataView,
  at: number,
  fields: readonly [string, Field][],
  blank: Readonly<Record<string, unknown>>,
): object {
  const row = { ...blank };
  for (const [name, field] of fields) row[name] = readField(data, at + field.at, field);
  return row;
}

function readField(data: DataView, at: number, field: Field): bigint | number | number[] {
  switch (field.kind) {
    case 'hash':
      return data.getBigUint64(at, true);
    case 'integer':
      return integer(data, at);
    case 'counter':
      return counter(data, at);
    case 'sum':
      return sum(data, at);
    case 'counters':
      return list(field.length, data, at, counter);
    case 'sums':
      return list(field.length, data, at, sum);
  }
}

/** `Array.from` takes several times as long, and most of a report is lists. */
function list(
  length: number,
  data: DataView,
  at: number,
  read: (data: DataView, at: number) => number,
): number[] {
  const values: number[] = [];
  for (let index = 0; index < length; index++) values.push(read(data, at + index * 8));
  return values;
}

function integer(data: DataView, at: number): number {
  const value = Number(data.getBigInt64(at, true));
  check(Math.abs(value) < 2 ** 31, 'has a number out of range');
  return value;
}

function level(data: DataView, at: number): number {
  const value = data.getUint32(at, true);
  check(value < 64, 'has a level out of range');
  return value;
}

function counter(data: DataView, at: number): number {
  const value = Number(data.getBigUint64(at, true));
  check(value <= Number.MAX_SAFE_INTEGER, 'has a counter out of range');
  return value;
}

function sum(data: DataView, at: number): number {
  const value = data.getFloat64(at, true);
  check(value >= 0 && value < Infinity, 'has a sum out of range');
  return value;
}

function check(holds: boolean, complaint: string): void {
  if (!holds) throw new WardropError('WARDROP_REPORT_INVALID', `usage report ${complaint}`);
}
