import { MOST_LOADS_TOLD } from '../../../wire/layout.js';
import {
  type EngineUsage,
  type LatencyUsage,
  type LoadUsage,
  type NetworkUsage,
  noVmUsage,
  type PoolUsage,
  type ReplicaUsage,
  type TurnUsage,
  type UsageReport,
  type VmUsage,
} from '../../../wire/usage-report.js';
import { decodeUsageReport } from '../../../wire/usage-report-reader.js';
import { type RowLayout, sectionNames, sections } from '../../../wire/usage-report-rows.js';
import { encodeUsageReport } from '../../../wire/usage-report-writer.js';
import { sum } from '../../collections.js';
import { KEEP_MS, KeptRows } from './kept-rows.js';
import { addRows, differenceOf, rowKey } from './usage-rows.js';

/** What happened at one node between two of its reports. */
export interface UsageDelta {
  readonly nodeId: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly pools: readonly PoolUsage[];
  readonly engines: readonly EngineUsage[];
  readonly latencies: readonly LatencyUsage[];
  readonly loads: readonly LoadUsage[];
  readonly networks: readonly NetworkUsage[];
  /**
   * Of those only that were in the report before, too: what others have counted since is not known. One that is left out now has
   * ended at least what it had under way.
   */
  readonly replicas: readonly ReplicaUsage[];
  readonly turns: readonly TurnUsage[];
  /** The largest of all VMs: of conversations with so many zero bits every turn is counted. */
  readonly turnLevel: number;
}

interface ReplicaInFlight {
  readonly engine: bigint;
  readonly replica: bigint;
  readonly inFlight: number;
}

/** Attempts under way at replicas, and at engines by their hashes. */
interface UnderWay {
  readonly replicas: readonly ReplicaInFlight[];
  readonly engines: ReadonlyMap<bigint, number>;
}

interface Node {
  lastMs: number;
  /** Since when its next report counts; undefined: since its last one. */
  sinceMs: number | undefined;
  readonly vms: Map<bigint, Vm>;
}

interface Vm {
  lastMs: number;
  sequence: number;
  /** Whether it started at a known node and was never silent for long, so that all loads that are first heard of are new. */
  readonly countsFromZero: boolean;
  rows: Sections;
  /** Not every report has all of them. */
  readonly loads: KeptRows<LoadUsage>;
}

type Sections = { readonly [Name in keyof typeof sections]: Map<string, VmUsage[Name][number]> };

/** Nodes and VMs that have said nothing for this long are forgotten, to bound memory. */
const FORGET_AFTER_MS = 24 * 3_600_000;
/** Of nodes that were removed: of more rows, those that have been silent for longest are forgotten, too. Rollouts leave many. */
const MOST_ROWS_OF_GONE = 100_000;
/**
 * Of more VMs of a node, those that are gone are forgotten: twice as many as can report at a time. VMs that trap again and again are
 * followed by ever new ones.
 */
const MOST_VMS = 256;
/** VMs write a block every so many milliseconds, or less often. */
const SHORTEST_PERIOD_MS = 10;
/** A VM of a node may have written so many blocks more than another in the same time. */
const SPARE_BLOCKS = 10;
/** A node that has reported within this time is live; its last report still holds. */
const LIVE_MS = 3_000;
/** Reports that waited for this process are read within this time of the end of a hold-up. */
export const SETTLE_MS = 1_000;
/** A node that is silent for this long is taken for removed, with its requests, and so may be a VM. */
const GONE_AFTER_MS = 60_000;

/**
 * Turns cumulative reports into differences. The latest report of a VM holds all that it has counted, so lost reports
 * are made good by the next; duplicates and late arrivals are known by their sequence and add nothing. The first
 * report of a node is the base line, because nobody knows since when it counts, and so is that of a VM that was left out of the
 * node's reports until now. A VM that has started since counts from zero, and so does a row that was not in the VM's last report;
 * but for loads, of which a report need not have all.
 */
export class UsageLedger {
  readonly #nodes = new Map<string, Node>();
  #heldUpMs = Number.NEGATIVE_INFINITY;
  /** Undefined since something was heard. */
  #counted: { readonly atMs: number; readonly underWay: UnderWay | undefined } | undefined;

  /**
   * This process did not run for a while, until now. Reports that are read next were written at any time since, and the ones
   * after them tell of the rest: both are spread over all of it, or the rest would look like a surge.
   */
  noteHoldUp(nowMs: number): void {
    this.#heldUpMs = nowMs;
    for (const node of this.#nodes.values()) node.sinceMs ??= node.lastMs;
  }

  /**
   * Whether a report tells anything new. Every VM numbers what it writes, also when it had nothing to do: a report in which
   * no number has grown is an old one, however often it comes, and its node is as silent as one that sends nothing.
   */
  isNews(nodeId: string, report: UsageReport): boolean {
    const node = this.#nodes.get(nodeId);
    if (node === undefined) return true;
    return report.vms.some(
      ({ incarnation, sequence }) =>
        sequence > (node.vms.get(incarnation)?.sequence ?? Number.NEGATIVE_INFINITY),
    );
  }

  /** Undefined for the first report of a node. */
  accept(nodeId: string, report: UsageReport, nowMs: number): UsageDelta | undefined {
    this.#counted = undefined;
    const known = this.#nodes.get(nodeId);
    const node = known ?? { lastMs: nowMs, sinceMs: undefined, vms: new Map() };
    this.#nodes.set(nodeId, node);
    if (report.vms.some(({ incarnation }) => !node.vms.has(incarnation))) this.#forget(nodeId, nowMs);
    const sums = noRows();
    const isNew = newVms(node, report, nowMs);
    for (const vm of report.vms) advance(node, vm, nowMs, sums, known !== undefined && isNew(vm));
    forgetMore(node, nowMs);
    const fromMs = node.sinceMs ?? node.lastMs;
    node.lastMs = nowMs;
    if (nowMs - this.#heldUpMs >= SETTLE_MS) node.sinceMs = undefined;
    if (known === undefined) return undefined;
    return {
      nodeId,
      fromMs,
      toMs: nowMs,
      pools: [...sums.pools.values()],
      engines: [...sums.engines.values()],
      latencies: [...sums.latencies.values()],
      loads: [...sums.loads.values()],
      networks: [...sums.networks.values()],
      replicas: [...sums.replicas.values()],
      turns: [...sums.turns.values()],
      turnLevel: Math.max(0, ...report.vms.map(({ turnLevel }) => turnLevel)),
    };
  }

  knows(nodeId: string): boolean {
    return this.#nodes.has(nodeId);
  }

  /** Forgets a node, with its requests under way. */
  drop(nodeId: string): void {
    this.#counted = undefined;
    this.#nodes.delete(nodeId);
  }

  /**
   * Attempts under way at each engine, by its hash; undefined while a node is silent of which requests may be under
   * way.
   */
  inFlight(nowMs: number): ReadonlyMap<bigint, number> | undefined {
    return this.#underWay(nowMs)?.engines;
  }

  /** Attempts under way at each replica of each engine; undefined as in `inFlight`. */
  replicasInFlight(nowMs: number): readonly ReplicaInFlight[] | undefined {
    return this.#underWay(nowMs)?.replicas;
  }

  /** Counted once for all that ask at one time, as for every engine whose page is read. */
  #underWay(nowMs: number): UnderWay | undefined {
    if (this.#counted?.atMs !== nowMs) this.#counted = { atMs: nowMs, underWay: this.#count(nowMs) };
    return this.#counted.underWay;
  }

  #count(nowMs: number): UnderWay | undefined {
    const sums = new Map<string, { engine: bigint; replica: bigint; inFlight: number }>();
    for (const node of this.#nodes.values()) {
      const silentMs = nowMs - node.lastMs;
      if (silentMs > GONE_AFTER_MS) continue;
      if (silentMs > LIVE_MS) return undefined;
      for (const vm of node.vms.values()) {
        if (nowMs - vm.lastMs > LIVE_MS) continue;
        for (const [key, { engine, replica, sent, ended }] of vm.rows.replicas) {
          const sum = sums.get(key);
          if (sum === undefined) sums.set(key, { engine, replica, inFlight: sent - ended });
          else sum.inFlight += sent - ended;
        }
      }
    }
    const engines = new Map<bigint, number>();
    for (const sum of sums.values()) {
      sum.inFlight = Math.max(0, sum.inFlight);
      engines.set(sum.engine, (engines.get(sum.engine) ?? 0) + sum.inFlight);
    }
    return { replicas: [...sums.values()], engines };
  }

  /** All but the node that has just called. */
  #forget(callingId: string, nowMs: number): void {
    for (const [nodeId, node] of this.#nodes) {
      if (nodeId !== callingId && nowMs - node.lastMs > FORGET_AFTER_MS) this.#nodes.delete(nodeId);
      for (const [incarnation, vm] of node.vms) {
        if (nowMs - vm.lastMs > FORGET_AFTER_MS) node.vms.delete(incarnation);
      }
    }
    const gone = [...this.#nodes]
      .filter(([nodeId, { lastMs }]) => nodeId !== callingId && nowMs - lastMs > GONE_AFTER_MS)
      .sort(([, a], [, b]) => b.lastMs - a.lastMs);
    let rows = 0;
    for (const [nodeId, node] of gone) {
      rows += rowsOf(node);
      if (rows > MOST_ROWS_OF_GONE) this.#nodes.delete(nodeId);
    }
  }

  save() {
    const nodes = [...this.#nodes].map(([id, { lastMs, sinceMs, vms }]) => {
      const usages = [...vms].map(([incarnation, vm]) => usageOf(incarnation, vm));
      const report = Buffer.from(encodeUsageReport({ vms: usages })).toString('base64');
      const ofVms = [...vms.values()].map(({ lastMs, countsFromZero, loads }) => {
        return { lastMs, countsFromZero, loads: loads.save() };
      });
      return [id, { lastMs, sinceMs, vms: ofVms, report }] as const;
    });
    return { nodes, heldUpMs: this.#heldUpMs };
  }

  restore({ nodes, heldUpMs }: SavedUsageLedger): void {
    this.#nodes.clear();
    this.#counted = undefined;
    for (const [id, { lastMs, sinceMs, vms, report }] of nodes) {
      const node: Node = { lastMs, sinceMs, vms: new Map() };
      for (const [at, usage] of decodeUsageReport(Buffer.from(report, 'base64')).vms.entries()) {
        const saved = vms[at]!;
        advance(node, usage, saved.lastMs, noRows(), saved.countsFromZero);
        node.vms.get(usage.incarnation)!.loads.restore(saved.loads);
      }
      this.#nodes.set(id, node);
    }
    this.#heldUpMs = heldUpMs;
  }
}

type SavedUsageLedger = ReturnType<UsageLedger['save']>;

/** Forgets the VMs that have been silent longest where there are too many, but none that may report again. */
function forgetMore({ vms }: Node, nowMs: number): void {
  if (vms.size <= MOST_VMS) return;
  const silent = [...vms]
    .filter(([, { lastMs }]) => nowMs - lastMs > GONE_AFTER_MS)
    .sort(([, a], [, b]) => a.lastMs - b.lastMs);
  for (const [incarnation] of silent.slice(0, vms.size - MOST_VMS)) vms.delete(incarnation);
}

function rowsOf({ vms }: Node): number {
  return sum(
    [...vms.values()].flatMap(({ rows, loads }) => [
      ...Object.values(rows).map(({ size }) => size),
      loads.size,
    ]),
  );
}

/** The last report of a VM, as far as it is remembered. */
function usageOf(incarnation: bigint, { sequence, rows, loads }: Vm): VmUsage {
  return {
    ...noVmUsage(incarnation, sequence),
    pools: [...rows.pools.values()],
    engines: [...rows.engines.values()],
    latencies: [...rows.latencies.values()],
    replicas: [...rows.replicas.values()],
    loads: loads.values(),
    networks: [...rows.networks.values()],
    turns: [...rows.turns.values()],
  };
}

/**
 * Tells which VMs of a report can have started since the node's last one: those that have written no more since their start than a
 * VM that is known has since then. One that has was stalled or overlooked, and has counted for who knows how long.
 */
function newVms(node: Node, report: UsageReport, nowMs: number): (vm: VmUsage) => boolean {
  const written = report.vms.flatMap(({ incarnation, sequence }) => {
    const before = node.vms.get(incarnation)?.sequence;
    return before !== undefined && sequence > before ? [sequence - before] : [];
  });
  const most = written.length > 0 ? Math.max(...written) : (nowMs - node.lastMs) / SHORTEST_PERIOD_MS;
  return ({ sequence }) => sequence <= most + SPARE_BLOCKS;
}

/** Moves what is known of a VM up to its report, and adds the differences to `sums`. `isNew`: if it is not known, it has just started. */
function advance(node: Node, report: VmUsage, nowMs: number, sums: Sections, isNew: boolean): void {
  const vm = node.vms.get(report.incarnation);
  if (vm !== undefined && report.sequence <= vm.sequence) {
    vm.lastMs = nowMs;
    return;
  }
  const rows = noRows();
  // In a long silence loads may have started over, and be more than before all the same.
  const wasSilent = vm !== undefined && nowMs - vm.lastMs > KEEP_MS;
  const countsFromZero = !wasSilent && (vm?.countsFromZero ?? isNew);
  const isBaseLine = vm === undefined && !isNew;
  const loads = wasSilent ? new KeptRows<LoadUsage>() : (vm?.loads ?? new KeptRows<LoadUsage>());
  loads.age(nowMs);
  const hasAllLoads = report.loads.length < MOST_LOADS_TOLD;
  const mayBeOld = wasSilent || !(hasAllLoads || countsFromZero);
  for (const name of sectionNames) {
    const layout = sections[name].row as RowLayout<unknown>;
    const before = (name === 'loads' ? loads : vm?.rows[name]) as Rows<unknown> | undefined;
    const after = (name === 'loads' ? loads : rows[name]) as Rows<unknown>;
    for (const row of report[name]) {
      const key = rowKey<unknown>(row, layout);
      const last = before?.get(key);
      after.set(key, row);
      if (isBaseLine) continue;
      // A replica without requests is left out, but counts on.
      if (name === 'replicas' && last === undefined) continue;
      // It is the first that is heard of this replica, and what it counted before is not known.
      if (name === 'loads' && last === undefined && mayBeOld) continue;
      const isWhole =
        last === undefined || (name === 'loads' && startsOver(row as LoadUsage, last as LoadUsage));
      add(sums[name], key, isWhole ? row : differenceOf(row, last, layout), layout);
    }
  }
  for (const [key, row] of vm?.rows.replicas ?? []) {
    if (rows.replicas.has(key)) continue;
    add(sums.replicas, key, { ...row, sent: 0, ended: row.sent - row.ended }, sections.replicas.row);
  }
  node.vms.set(report.incarnation, { lastMs: nowMs, sequence: report.sequence, countsFromZero, rows, loads });
}

interface Rows<T> {
  get(key: string): T | undefined;
  set(key: string, row: T): unknown;
}

/** Filters count loads with few digits, from zero again before these are not enough, and so do replicas that come back. */
function startsOver(now: LoadUsage, last: LoadUsage): boolean {
  return (
    now.reports < last.reports ||
    now.garbled < last.garbled ||
    now.sums.some((sum, index) => sum < last.sums[index]!)
  );
}

function add<T>(sums: Map<string, T>, key: string, row: T, layout: RowLayout<T>): void {
  const sum = sums.get(key);
  sums.set(key, sum === undefined ? row : addRows(sum, row, layout));
}

function noRows(): Sections {
  return {
    pools: new Map(),
    engines: new Map(),
    latencies: new Map(),
    replicas: new Map(),
    loads: new Map(),
    networks: new Map(),
    turns: new Map(),
  };
}
