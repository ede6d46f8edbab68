import type { ModuleHost } from './module-host.js';
import { exchange, loadFilter, snapshotOf } from './modules.js';
import { quantile } from './statistics.js';

const SNAPSHOT_BYTES = 2 ** 20;
const REPLICAS = 100;
/** Installs before memory is looked at, for buffers to find their size. */
const SETTLING = 20;
const REQUESTS_PER_TICK = 10_000;

export interface MemoryResult {
  readonly snapshotBytes: number;
  readonly mibPerVm: number;
  readonly installs: number;
  readonly installMs: { readonly p50: number; readonly p99: number };
  readonly requests: number;
  /** Bytes by which the memory grew over the installs and the requests. */
  readonly growth: number;
}

/** A VM with a large snapshot: its memory, what an install takes, and what grows with installs and requests. */
export function measureMemory(installs: number, requests: number): MemoryResult {
  const host = loadFilter();
  const snapshots = [2, 3, 4, 5].map(largeSnapshot);
  const next = (index: number) => snapshots[index % snapshots.length]!;
  for (let i = 0; i < SETTLING; i++) host.answer(next(i));
  serve(host, 2 * REQUESTS_PER_TICK);
  const before = host.memoryBytes;
  const times: number[] = [];
  for (let i = 0; i < installs; i++) {
    times.push(host.answer(next(i)));
  }
  serve(host, requests);
  times.sort((a, b) => a - b);
  return {
    snapshotBytes: snapshots[0]!.length,
    mibPerVm: host.memoryBytes / 2 ** 20,
    installs,
    installMs: { p50: quantile(times, 0.5), p99: quantile(times, 0.99) },
    requests,
    growth: host.memoryBytes - before,
  };
}

/** A snapshot of a MiB. */
export function largeSnapshot(version: number): Uint8Array {
  const engines = Math.floor((100 * SNAPSHOT_BYTES) / snapshotOf(100, REPLICAS).length);
  return snapshotOf(engines, REPLICAS, version);
}

function serve(host: ModuleHost, requests: number): void {
  const some = host.server(exchange);
  for (let served = 0; served < requests; served += REQUESTS_PER_TICK) {
    some(Math.min(REQUESTS_PER_TICK, requests - served));
    host.tick();
  }
}
