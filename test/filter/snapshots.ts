import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import type { FilterConfig } from '../../wire/filter-config.js';
import type { SnapshotPool, SnapshotSegment, SnapshotView } from '../../wire/snapshot-view.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';

const module = filterModule();

export interface EngineSketch {
  /** Share of the pool's keys; they need not add up to 1. */
  readonly weight: number;
  readonly replicas?: number;
  readonly ready?: boolean;
  readonly overflow?: number;
  readonly replicaLimit?: number;
  readonly busyAbove?: number;
}

/**
 * A snapshot with one model `m` and one pool: engine e0, e1, … with the given weights, each the backup of the one
 * before. Replica n of engine i is 10.0.i.n:8000.
 */
export function sketch(
  engines: readonly EngineSketch[],
  change: Partial<SnapshotView> & { pool?: Partial<SnapshotPool> } = {},
): SnapshotView {
  const total = engines.reduce((sum, engine) => sum + engine.weight, 0);
  const segments: SnapshotSegment[] = [];
  let sum = 0;
  for (const [index, engine] of engines.entries()) {
    if (engine.weight > 0) {
      const backup = engines.length > 1 ? (index + 1) % engines.length : -1;
      segments.push({ start: Math.round((sum / total) * 2 ** 32), owner: index, backup });
    }
    sum += engine.weight;
  }
  const { pool, ...rest } = change;
  return {
    version: 1,
    planId: '0123456789abcdef',
    issuedAtMs: 1_700_000_000_000,
    frontendId: 'west',
    salt: 'pepper',
    models: [{ name: 'm', pool: 0 }],
    pools: [
      {
        id: 'm',
        cluster: 'pool-m',
        engines: engines.map((_, index) => index),
        segments,
        retryRatio: 0.2,
        shedFraction: 0,
        ...pool,
      },
    ],
    engines: engines.map((engine, index) => ({
      id: `e${index}`,
      ...(engine.overflow !== undefined && { overflow: engine.overflow }),
      ...(engine.replicaLimit !== undefined && { replicaLimit: engine.replicaLimit }),
      ...(engine.busyAbove !== undefined && { busyAbove: engine.busyAbove }),
      replicas: Array.from({ length: engine.replicas ?? 1 }, (_, replica) => ({
        address: `10.0.${index}.${replica}:8000`,
        ready: engine.ready ?? true,
      })),
    })),
    nearest: engines.map((_, index) => index),
    ...rest,
  };
}

/** Lets the VM fetch this snapshot. */
export function deliver(vm: Vm, view: SnapshotView): void {
  if (!vm.call) vm.tick();
  vm.answer(200, encodeSnapshot(view));
}

/** Lets a VM find out which of its requests have ended without a word. */
export function sweep(vm: Vm): void {
  for (let tick = 0; tick < 2 * 32; tick++) vm.tick();
}

/** A VM that has this snapshot. */
export function started(view: SnapshotView, config: Partial<FilterConfig> = {}, host = new Host(module)): Vm {
  const vm = host.startVm({ frontendId: 'west', ...config });
  deliver(vm, view);
  return vm;
}

/** Where a conversation goes. */
export function home(vm: Vm, key: string): string | undefined {
  const stream = vm.request({ 'x-session-id': key });
  stream.respond(200).end();
  return stream.endpoints[0];
}

/** Number of the engine that an endpoint of `sketch` belongs to. */
export function engineOf(endpoint: string | undefined): number {
  return Number(endpoint?.split('.')[2]);
}
