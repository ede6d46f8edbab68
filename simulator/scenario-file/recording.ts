import { id64 } from '../../wire/hash.js';
import type { Config } from '../../xds-server/config/config.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { readRecording } from '../../xds-server/control/recording/read-recording.js';
import type { RecordedReport } from '../../xds-server/control/recording/recorded-signals.js';
import type { RecordedSolve } from '../../xds-server/control/recording/recording.js';
import { WardropError } from '../../xds-server/errors.js';
import type { Fleet } from '../../xds-server/fleet/fleet.js';
import type { FleetState } from '../../xds-server/fleet/fleet-state.js';
import { UsageLedger } from '../../xds-server/signals/usage/usage-ledger.js';
import { DEFAULT_CLIENT, type Fault, type Scenario, type ScenarioEngine } from '../scenario.js';
import { steps } from '../workloads/rate-curve.js';
import { largestRecorded, type RequestMeans, recorded } from '../workloads/recorded.js';
import {
  expectedDemandOf,
  KNOWN_FLEET_TIMEOUT_SECONDS,
  leftOutOf,
  type PoolDemand,
  poolsOf,
  replicasOf,
  rttMsOf,
  simulatedFleet,
  sloOf,
} from './known-fleet.js';
import { meanRequest } from './mean-request.js';

type RowDemand = FleetState['demands'][number];

/** Rates are taken over so long; the last one over what is left, too. */
const BIN_SECONDS = 5;
/** Caches fill and policies settle in the first part of a recording; at most so long. */
const WARMUP_SHARE = 0.2;
const LONGEST_WARMUP_SECONDS = 60;

/**
 * What a recording tells of a fleet's day as a scenario: the rates of every frontend and pool over time, the sizes of
 * requests as signals took them, who was ready when, and engines that behave as their profiles say.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function scenarioOfRecording(file: string): Promise<Scenario> {
  const solves: RecordedSolve[] = [];
  const reports: RecordedReport[] = [];
  for await (const item of readRecording(file)) {
    if (item.kind === 'solve') solves.push(item);
    else if (item.kind === 'report' || item.kind === 'load-report') reports.push(item);
  }
  const last = solves.at(-1);
  if (last === undefined || reports.length < 2)
    throw new WardropError(
      'WARDROP_RECORDING_INVALID',
      `${file} holds ${solves.length} solves and ${reports.length} reports; a scenario needs a solve and some time of reports`,
    );
  try {
    return scenarioOf(file, last, solves, reports);
  } catch (error) {
    if (error instanceof WardropError) throw error;
    const what = `${file} is damaged, or of another version of Wardrop: ${(error as Error).message}`;
    throw new WardropError('WARDROP_RECORDING_INVALID', what, { cause: error });
  }
}

function scenarioOf(
  file: string,
  last: RecordedSolve,
  solves: readonly RecordedSolve[],
  reports: readonly RecordedReport[],
): Scenario {
  const { fleet, demands } = last.input.state;
  const startMs = reports[0]!.atMs;
  const endAt = (reports.at(-1)!.atMs - startMs) / 1000;
  const counts = new Counts(fleet, startMs, endAt);
  for (const report of reports) counts.add(report);
  if (counts.total === 0 || demands.length === 0)
    throw new WardropError('WARDROP_RECORDING_INVALID', `${file}: no request came while it was recorded`);
  return build(file, last, solves, counts, startMs, endAt);
}

function build(
  file: string,
  last: RecordedSolve,
  solves: readonly RecordedSolve[],
  counts: Counts,
  startMs: number,
  endAt: number,
): Scenario {
  const { profiles, policy, state } = last.input;
  const fleet = simulatedFleet(state.fleet);
  const warmupSeconds = Math.min(LONGEST_WARMUP_SECONDS, WARMUP_SHARE * endAt);
  const rows = fleet.frontends.map((frontend) =>
    fleet.pools.map(({ id }): PoolDemand => {
      const means = meansOf(state.demands, frontend.id, id);
      const requestsPerSecond = counts.of(frontend.id, id) / endAt;
      return { poolId: id, requestsPerSecond, means, largestTokens: largestRecorded(means) };
    }),
  );
  const demands = rows.flat();
  const asked = demands.filter(({ requestsPerSecond }) => requestsPerSecond > 0);
  const engines = fleet.engines.flatMap((engine) =>
    replicasOf(engine, profiles.get(engine.profile)!, fleet.pools, demands),
  );
  const { pools, classes } = poolsOf(fleet, engines, new Set(asked.map(({ poolId }) => poolId)));
  const withSlo = pools.map((pool) => ({ ...pool, slo: sloOf(pool, profiles, demands, engines) }));
  const frontends = fleet.frontends.map(({ id, region }, index) => ({
    id,
    region,
    demands: rows[index]!.filter(({ requestsPerSecond }) => requestsPerSecond > 0).map(
      ({ poolId, means, requestsPerSecond }) => {
        const rate = steps(...counts.ratesOf(id, poolId));
        return {
          id: pools.length === 1 ? id : `${id} ${poolId}`,
          source: recorded(means),
          rate,
          expectedRps: requestsPerSecond,
          classShares: classes.map((requestClass) => Number(requestClass.id === poolId)),
        };
      },
    ),
  }));
  return {
    id: 'recording',
    about: `What ${file} tells of ${Math.round(endAt)} s, with engines that behave as their profiles say.`,
    leftOut: leftOutOf(state.fleet),
    frontends,
    engines,
    rttMs: rttMsOf(fleet, engines),
    pools: withSlo,
    classes,
    warmupSeconds,
    seconds: endAt - warmupSeconds,
    settledFrom: warmupSeconds,
    faults: outages(solves, engines, startMs, endAt),
    slo: withSlo[0]!.slo,
    client: { ...DEFAULT_CLIENT, timeoutSeconds: KNOWN_FLEET_TIMEOUT_SECONDS },
    signals: { periodSeconds: 1, delaySeconds: 1 },
    config: configOf({ fleet, profiles, policy }, rows),
  };
}

/** First tries of clients over time, by frontend and pool. */
class Counts {
  readonly #startMs: number;
  readonly #endAt: number;
  readonly #ledger = new UsageLedger();
  readonly #poolOf: ReadonlyMap<bigint, string>;
  readonly #frontendIds: readonly string[];
  /** Requests in each bin, by frontend and pool id. */
  readonly #bins = new Map<string, number[]>();

  constructor({ frontends, pools }: Fleet, startMs: number, endAt: number) {
    this.#startMs = startMs;
    this.#endAt = endAt;
    this.#poolOf = new Map(pools.map(({ id }) => [id64(id), id]));
    this.#frontendIds = frontends.map(({ id }) => id);
  }

  add({ kind, frontendId, nodeId, report, atMs }: RecordedReport): void {
    const delta = this.#ledger.accept(`${kind} ${frontendId} ${nodeId}`, report, atMs);
    if (delta === undefined || !this.#frontendIds.includes(frontendId)) return;
    const from = Math.max(0, (delta.fromMs - this.#startMs) / 1000);
    const to = (delta.toMs - this.#startMs) / 1000;
    for (const { pool, offered } of delta.pools) {
      const poolId = this.#poolOf.get(pool);
      if (poolId !== undefined && offered > 0) this.#spread(`${frontendId} ${poolId}`, offered, from, to);
    }
  }

  /** What a report counts may have come at any time since the one before, which may be long ago. */
  #spread(key: string, offered: number, from: number, to: number): void {
    const bins = this.#bins.get(key) ?? Array.from({ length: this.#binCount }, () => 0);
    this.#bins.set(key, bins);
    const last = this.#binAt(to);
    for (let bin = this.#binAt(from); bin <= last; bin++) {
      const { start, length } = this.#bin(bin);
      const overlap = Math.min(to, start + length) - Math.max(from, start);
      bins[bin]! += to > from ? (offered * overlap) / (to - from) : offered;
    }
  }

  get #binCount(): number {
    return Math.max(1, Math.floor(this.#endAt / BIN_SECONDS));
  }

  #binAt(seconds: number): number {
    return Math.min(this.#binCount - 1, Math.floor(seconds / BIN_SECONDS));
  }

  #bin(bin: number): { readonly start: number; readonly length: number } {
    const start = bin * BIN_SECONDS;
    return { start, length: bin < this.#binCount - 1 ? BIN_SECONDS : this.#endAt - start };
  }

  get total(): number {
    return [...this.#bins.values()].flat().reduce((a, b) => a + b, 0);
  }

  of(frontendId: string, poolId: string): number {
    return this.#ofRow(frontendId, poolId).reduce((a, b) => a + b, 0);
  }

  ratesOf(frontendId: string, poolId: string): (readonly [number, number])[] {
    return this.#ofRow(frontendId, poolId).map((count, at) => {
      const { start, length } = this.#bin(at);
      return [start, count / length] as const;
    });
  }

  #ofRow(frontendId: string, poolId: string): readonly number[] {
    return this.#bins.get(`${frontendId} ${poolId}`) ?? [];
  }
}

/** Of a row over its classes; of the pool, then of everything, where the row has none. */
function meansOf(demands: readonly RowDemand[], frontendId: string, poolId: string): RequestMeans {
  const ofPool = demands.filter((demand) => demand.poolId === poolId);
  const ofRow = ofPool.filter((demand) => demand.frontendId === frontendId);
  const used = [ofRow, ofPool, demands].find(({ length }) => length > 0)!;
  return meanRequest(used.map((means) => ({ requestsPerSecond: means.requestsPerSecond, means })));
}

/** From the solve that a replica was not ready for until the one that it was. */
function outages(
  solves: readonly RecordedSolve[],
  engines: readonly ScenarioEngine[],
  startMs: number,
  endAt: number,
): Fault[] {
  return engines.flatMap(({ id, engineId, address }) => {
    const faults: Fault[] = [];
    let downFrom: number | undefined;
    for (const { input } of solves) {
      const replica = input.state.engines
        .find((engine) => engine.id === engineId)
        ?.replicas.find((other) => other.address === address);
      const at = Math.max(0, (input.state.atMs - startMs) / 1000);
      if (replica?.ready === false) downFrom ??= at;
      else if (downFrom !== undefined) {
        if (at > downFrom) faults.push({ kind: 'engine-down', engine: id, from: downFrom, until: at });
        downFrom = undefined;
      }
    }
    if (downFrom !== undefined && downFrom < endAt)
      faults.push({ kind: 'engine-down', engine: id, from: downFrom, until: Number.POSITIVE_INFINITY });
    return faults;
  });
}

/** What the control server was configured with, as far as plans depend on it. */
function configOf(
  known: Pick<Config, 'fleet' | 'profiles' | 'policy'>,
  rows: readonly (readonly PoolDemand[])[],
): Config {
  const { frontends } = known.fleet;
  const stub = loadConfig('recording', () =>
    JSON.stringify({
      frontends: [{ id: frontends[0]!.id, region: 'r' }],
      engines: [{ id: 'e', region: 'r', models: ['m'], endpoints: [] }],
    }),
  );
  return { ...stub, ...known, expectedDemand: expectedDemandOf(known.fleet, rows) };
}
