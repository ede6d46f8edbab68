import { id64 } from '../../../wire/hash.js';
import {
  type EngineUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type PoolUsage,
  type UsageReport,
} from '../../../wire/usage-report.js';
import type { EngineLoadCounts, LoadReport } from '../../fleet/load-report.js';

/** Envoy's load reports name localities, so that it is not known which replica has a request. */
const NO_REPLICA = 0n;

/** Envoys report every second. What has been in none of so many reports may be gone, and begins again from zero if it is not. */
const MOST_QUIET_REPORTS = 600;

interface Row<T> {
  usage: T;
  /** Number of the last report that it was in. */
  toldIn: number;
}

interface EngineRow extends Row<EngineUsage> {
  underWay: number;
}

/**
 * Adds up the load reports (LRS) of one Envoy's stream to what a filter would have reported in the place of Envoy, as far as Envoy
 * counts it: no classes, tokens or latencies. Load reports are differences, usage reports are not.
 */
export class LoadCounts {
  readonly #incarnation: bigint;
  #sequence = 0;
  readonly #pools = new Map<string, Row<PoolUsage>>();
  readonly #engines = new Map<string, EngineRow>();

  /** `incarnation`: unlike that of any other stream of the same Envoy. */
  constructor(incarnation: bigint) {
    this.#incarnation = incarnation;
  }

  /** All that was reported up to and with this report. */
  add(report: LoadReport): UsageReport {
    this.#sequence++;
    // Who is not in a report has nothing under way.
    for (const row of this.#engines.values()) row.underWay = 0;
    for (const { poolId, dropped, engines } of report) {
      const pool = this.#pools.get(poolId)?.usage ?? noPoolUsage(id64(poolId));
      // Envoy counts attempts here, not requests: its own retries look like more demand.
      const offered = engines.reduce((sum, { issued }) => sum + issued, dropped);
      const usage = { ...pool, offered: pool.offered + offered, shed: pool.shed + dropped };
      this.#pools.set(poolId, { usage, toldIn: this.#sequence });
      for (const counts of engines) this.#addEngine(poolId, counts);
    }
    this.#forgetQuiet();
    const rows = [...this.#engines.values()];
    for (const row of rows) noteEnded(row);
    return {
      vms: [
        {
          ...noVmUsage(this.#incarnation, this.#sequence),
          pools: [...this.#pools.values()].map(({ usage }) => usage),
          engines: rows.map(({ usage }) => usage),
          replicas: [...underWayByEngine(rows)].map(([engine, sent]) => ({
            engine,
            replica: NO_REPLICA,
            sent,
            ended: 0,
          })),
        },
      ],
    };
  }

  #forgetQuiet(): void {
    for (const rows of [this.#pools, this.#engines]) {
      for (const [key, { toldIn }] of rows) {
        if (this.#sequence - toldIn >= MOST_QUIET_REPORTS) rows.delete(key);
      }
    }
  }

  /** An engine may be there several times, at several priorities. */
  #addEngine(poolId: string, counts: EngineLoadCounts): void {
    const key = `${poolId} ${counts.engineId}`;
    const row = this.#engines.get(key) ?? {
      usage: noEngineUsage(id64(poolId), id64(counts.engineId)),
      toldIn: this.#sequence,
      underWay: 0,
    };
    const { usage } = row;
    this.#engines.set(key, row);
    row.toldIn = this.#sequence;
    row.underWay += counts.inProgress;
    row.usage = {
      ...usage,
      planned: usage.planned + counts.issued,
      failures: usage.failures + counts.failed,
      status2xx: usage.status2xx + counts.succeeded,
    };
  }
}

/** Requests that clients broke off are neither successes nor errors: whatever is not under way has ended. */
function noteEnded(row: EngineRow): void {
  const { planned, ended } = row.usage;
  row.usage = { ...row.usage, ended: Math.max(ended, planned - row.underWay) };
}

function underWayByEngine(rows: readonly EngineRow[]): ReadonlyMap<bigint, number> {
  const sums = new Map<bigint, number>();
  for (const { usage, underWay } of rows) sums.set(usage.engine, (sums.get(usage.engine) ?? 0) + underWay);
  return sums;
}
