import type { Figures } from './figures.js';
import type { MemoryResult } from './memory.js';
import type { Calls, ModuleTimes } from './modules.js';
import type { ResidentMemory } from './resident-memory.js';
import type { Estimate } from './statistics.js';
import type { VariantName } from './variants.js';

const DESCRIPTIONS: Record<VariantName, string> = {
  defaults: 'Envoy, default settings',
  none: 'Envoy without a filter',
  maglev: 'native maglev on the key',
  filter: 'Wardrop, everything on',
  c: 'C filter, same host calls',
  bare: 'C filter that does nothing',
  extProc: 'ext_proc picker',
  noneNoBody: 'Envoy without a filter',
  filterNoBody: 'Wardrop, everything on',
  cNoBody: 'C filter, same host calls',
  bareNoBody: 'C filter that does nothing',
  extProcNoBody: 'ext_proc picker',
  noneBody2k: 'Envoy without a filter',
  bareBody2k: 'C filter that only waits',
  filterBody2k: 'Wardrop, everything on',
  extProcBody2k: 'ext_proc picker, JSON decode',
  noneBody100k: 'Envoy without a filter',
  bareBody100k: 'C filter that only waits',
  filterBody100k: 'Wardrop, everything on',
  extProcBody100k: 'ext_proc picker, JSON decode',
};

const GROUPS: Partial<Record<VariantName, string>> = {
  none: 'key in a header',
  noneNoBody: 'key in a header, no body',
  noneBody2k: 'key in a body of 2 KB',
  noneBody100k: 'key in a body of 100 KB',
};

/**
 * Filter, picker, a filter that does nothing, and the least that the picker should add in multiples of the filter: CPU, and
 * median latency.
 */
const TARGETS: readonly [VariantName, VariantName, VariantName, number, number][] = [
  ['filter', 'extProc', 'bare', 6, 10],
  ['filterNoBody', 'extProcNoBody', 'bareNoBody', 6, 10],
  ['filterBody2k', 'extProcBody2k', 'bareBody2k', 8, 15],
  ['filterBody100k', 'extProcBody100k', 'bareBody100k', 25, 40],
];

/** Tables of what was measured on Envoy; ± is a 95 % interval. */
export function envoyReport(figures: Figures): string[] {
  const lines = [row('', 'CPU µs/request', 'added', 'p50 µs', 'added', 'µs/chunk')];
  for (const name of figures.names) {
    if (GROUPS[name]) lines.push(`  ${GROUPS[name]}`);
    const floor = figures.isFloor(name);
    lines.push(
      row(
        DESCRIPTIONS[name],
        text(figures.cpuMicros(name)),
        floor ? '' : text(figures.addedMicros(name)),
        text(figures.p50Micros(name), 0),
        floor ? '' : text(figures.addedP50Micros(name), 0),
        figures.hasChunks(name) ? text(figures.chunkMicros(name), 2) : '',
      ),
    );
  }
  for (const [name, rival, bare, cpu, p50] of TARGETS) {
    const times = (of: VariantName) =>
      [figures.advantage('cpuMicros', of, rival), figures.advantage('p50Micros', of, rival)].map((each) =>
        text(each),
      );
    const [ofCpu, ofP50] = times(name);
    lines.push(
      `${name}: the picker adds ${ofCpu} times its CPU (wanted ${cpu}), ${ofP50} times its latency (wanted ${p50})`,
    );
    if (!figures.names.includes(bare)) continue;
    const [bareCpu, bareP50] = times(bare);
    lines.push(`  a filter that does nothing would reach ${bareCpu} and ${bareP50}`);
  }
  return lines;
}

export function modulesReport({ filterMicros, cMicros, ratio }: ModuleTimes): string {
  return (
    `under Node: filter ${text(filterMicros, 2)} µs a request, C filter ${text(cMicros, 2)} µs, ` +
    `ratio ${text(ratio, 2)} (wanted 1.2 at most)`
  );
}

export function callsReport(name: string, calls: Calls): string {
  const each = Object.entries(calls).map(([call, times]) => `${times} ${call.replace(/^proxy_/, '')}`);
  return `host calls of the ${name}: ${total(calls)} a request (${each.join(', ')})`;
}

export function memoryReport(result: MemoryResult): string[] {
  const { snapshotBytes, mibPerVm, installs, installMs, requests, growth } = result;
  return [
    `a VM with a snapshot of ${(snapshotBytes / 2 ** 20).toFixed(2)} MiB: ${mibPerVm} MiB (wanted 8 at most); install ` +
      `${installMs.p50.toFixed(2)} ms, p99 ${installMs.p99.toFixed(2)} ms (wanted 1 and 5)`,
    `growth over ${installs} installs and ${requests} requests: ${growth} bytes`,
  ];
}

export function residentReport({ snapshotBytes, idle, loaded, first, linear }: ResidentMemory): string {
  return (
    `a further VM with a snapshot of ${(snapshotBytes / 2 ** 20).toFixed(2)} MiB adds to Envoy's resident memory ` +
    `${text(idle)} MiB before the first request, ${text(loaded)} MiB after some; linear ${linear.toFixed(2)} MiB ` +
    `(wanted 8 at most); the filter adds ${text(first)} MiB to an Envoy with one worker`
  );
}

export function total(calls: Calls): number {
  return Object.values(calls).reduce((sum, times) => sum + times, 0);
}

function text({ value, low, high }: Estimate, digits = 1): string {
  return `${value.toFixed(digits)} [${low.toFixed(digits)}..${high.toFixed(digits)}]`;
}

function row(name: string, ...cells: string[]): string {
  return name.padEnd(30) + cells.map((cell) => cell.padStart(22)).join('');
}
