import type { EngineUsage, PoolUsage, UsageReport, VmUsage } from '../../wire/usage-report.js';

/** What happened at one node between two of its reports. */
export interface UsageDelta {
  readonly nodeId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly pools: readonly PoolUsage[];
  readonly engines: readonly EngineUsage[];
}

interface Node {
  lastMs: number;
  readonly vms: Map<bigint, Vm>;
}

interface Vm {
  lastMs: number;
  readonly pools: Map<bigint, PoolUsage>;
  readonly engines: Map<string, EngineUsage>;
}

/** Nodes and VMs that have said nothing for this long are forgotten, to bound memory. */
const FORGET_AFTER_MS = 24 * 3_600_000;
/** A node that has reported within this time is live; its last report still holds. */
const LIVE_MS = 3_000;
/** A node that is silent for this long is taken for removed, with its requests. */
const GONE_AFTER_MS = 60_000;

/**
 * Turns cumulative reports into differences. Counters of a VM only grow, so the larger value is the later one: lost
 * reports are made good by the next, and duplicates and late arrivals add nothing. The first report of a node is the
 * base line, because nobody knows since when it counts; a VM that turns up at a known node counts from zero.
 */
export class UsageLedger {
  readonly #nodes = new Map<string, Node>();

  /** Undefined for the first report of a node. */
  accept(nodeId: string, report: UsageReport, nowMs: number): UsageDelta | undefined {
    const known = this.#nodes.get(nodeId);
    const node = known ?? { lastMs: nowMs, vms: new Map() };
    this.#nodes.set(nodeId, node);
    if (report.vms.some(({ incarnation }) => !node.vms.has(incarnation))) this.#forget(nowMs);
    const pools = new Map<bigint, PoolUsage>();
    const engines = new Map<string, EngineUsage>();
    for (const vm of report.vms) this.#advance(node, vm, nowMs, pools, engines);
    const fromMs = node.lastMs;
    node.lastMs = nowMs;
    if (known === undefined) return undefined;
    return { nodeId, fromMs, toMs: nowMs, pools: [...pools.values()], engines: [...engines.values()] };
  }

  /**
   * Requests under way at each engine, by its hash; undefined while a node is silent of which requests may be under
   * way.
   */
  inFlight(nowMs: number): ReadonlyMap<bigint, number> | undefined {
    const counts = new Map<bigint, number>();
    for (const node of this.#nodes.values()) {
      const silentMs = nowMs - node.lastMs;
      if (silentMs > GONE_AFTER_MS) continue;
      if (silentMs > LIVE_MS) return undefined;
      for (const vm of node.vms.values()) {
        if (nowMs - vm.lastMs > LIVE_MS) continue;
        for (const { engine, planned, diverted, ended } of vm.engines.values()) {
          counts.set(engine, (counts.get(engine) ?? 0) + Math.max(0, planned + diverted - ended));
        }
      }
    }
    return counts;
  }

  #advance(
    node: Node,
    report: VmUsage,
    nowMs: number,
    pools: Map<bigint, PoolUsage>,
    engines: Map<string, EngineUsage>,
  ): void {
    const vm = node.vms.get(report.incarnation) ?? { lastMs: nowMs, pools: new Map(), engines: new Map() };
    node.vms.set(report.incarnation, vm);
    vm.lastMs = nowMs;
    for (const usage of report.pools) advance(vm.pools, pools, usage.pool, usage);
    for (const usage of report.engines) advance(vm.engines, engines, `${usage.pool} ${usage.engine}`, usage);
  }

  #forget(nowMs: number): void {
    for (const [nodeId, node] of this.#nodes) {
      if (nowMs - node.lastMs > FORGET_AFTER_MS) this.#nodes.delete(nodeId);
      for (const [incarnation, vm] of node.vms) {
        if (nowMs - vm.lastMs > FORGET_AFTER_MS) node.vms.delete(incarnation);
      }
    }
  }
}

/** Moves `seen` up to `usage` and adds the difference to `sums`. */
function advance<K, U extends PoolUsage | EngineUsage>(
  seen: Map<K, U>,
  sums: Map<K, U>,
  key: K,
  usage: U,
): void {
  const last = seen.get(key);
  const latest = last === undefined ? usage : combine(last, usage, Math.max);
  const difference = last === undefined ? usage : combine(latest, last, (now, before) => now - before);
  const sum = sums.get(key);
  seen.set(key, latest);
  sums.set(key, sum === undefined ? difference : combine(sum, difference, (a, b) => a + b));
}

/** Combines the counters of two usages of the same pool and engine; names (64-bit hashes) stay. */
function combine<U extends PoolUsage | EngineUsage>(a: U, b: U, each: (a: number, b: number) => number): U {
  const other = b as unknown as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(a).map(([name, value]) => [
      name,
      typeof value === 'number' ? each(value, other[name] as number) : value,
    ]),
  ) as unknown as U;
}
