import { id64 } from '../../wire/hash.js';
import { MODEL_HEADER } from '../../wire/names.js';
import type { NeedCondition } from '../../wire/snapshot-view.js';
import type { Config } from '../../xds-server/config/config.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { readRecording } from '../../xds-server/control/recording/read-recording.js';
import type { RecordedReport } from '../../xds-server/control/recording/recorded-signals.js';
import type { RecordedSolve } from '../../xds-server/control/recording/recording.js';
import { WardropError } from '../../xds-server/errors.js';
import type { Fleet, Pool } from '../../xds-server/fleet/fleet.js';
import { eligibleIds } from '../../xds-server/fleet/last-resort.js';
import { idleTtftSeconds } from '../../xds-server/profiles/curves.js';
import { workSeconds } from '../../xds-server/profiles/profile.js';
import { UsageLedger } from '../../xds-server/signals/usage/usage-ledger.js';
import { engineOf } from '../engine/from-profile.js';
import type { Fault, RequestClass, Scenario, ScenarioEngine } from '../scenario.js';
import { steps } from '../workloads/rate-curve.js';
import { type RequestMeans, recorded } from '../workloads/recorded.js';

/** Rates are taken over so long. */
const BIN_SECONDS = 5;
/** Caches fill and policies settle in the first part of a recording; at most so long. */
const WARMUP_SHARE = 0.2;
const LONGEST_WARMUP_SECONDS = 60;
/** An answer is in time when it takes at most so many times what an idle engine nearby needs. */
const SLO_TTFT = 5;
const SLO_E2E = 3;
const CLIENT_TIMEOUT_SECONDS = 120;

/**
 * What a recording tells of a fleet's day as a scenario: the rates of every frontend over time, the sizes of requests
 * as signals took them, who was ready when, and engines that behave as their profiles say.
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
  const counts = new Counts(fleet, startMs);
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
  const { fleet } = last.input.state;
  const warmupSeconds = Math.min(LONGEST_WARMUP_SECONDS, WARMUP_SHARE * endAt);
  const means = fleet.frontends.map(({ id }) => meansOf(last, id));
  const engines = enginesOf(last, means);
  const classes = fleet.pools.map((pool) => classOf(pool, fleet, engines));
  const frontends = fleet.frontends.map(({ id, region }, index) => ({
    id,
    region,
    source: recorded(means[index]!),
    rate: steps(...counts.ratesOf(id)),
    classShares: counts.sharesOf(id),
  }));
  const rttMs = fleet.networkSeconds.map((row) =>
    engines.map(({ engineId }) => 1000 * row[fleet.engines.findIndex(({ id }) => id === engineId)]!),
  );
  const faults = outages(solves, engines, startMs, endAt);
  return {
    id: 'recording',
    about: `What ${file} tells of ${Math.round(endAt)} s, with engines that behave as their profiles say.`,
    frontends,
    engines,
    rttMs,
    classes,
    warmupSeconds,
    seconds: endAt - warmupSeconds,
    settledFrom: warmupSeconds,
    faults,
    slo: sloOf(last, means, engines),
    client: { timeoutSeconds: CLIENT_TIMEOUT_SECONDS, retries: 2 },
    expectedRps: frontends.map(({ rate }) => rate.at(0)),
    signals: { periodSeconds: 1, delaySeconds: 1 },
    config: configOf(last),
  };
}

/** First tries of clients over time, by frontend and pool. */
class Counts {
  readonly #startMs: number;
  readonly #ledger = new UsageLedger();
  readonly #poolOf: ReadonlyMap<bigint, number>;
  /** By frontend id: requests in each bin, and by pool. */
  readonly #bins = new Map<string, { readonly bins: number[]; readonly pools: number[] }>();

  constructor(fleet: Fleet, startMs: number) {
    this.#startMs = startMs;
    this.#poolOf = new Map(fleet.pools.map(({ id }, index) => [id64(id), index]));
    for (const { id } of fleet.frontends) this.#bins.set(id, { bins: [], pools: fleet.pools.map(() => 0) });
  }

  add({ kind, frontendId, nodeId, report, atMs }: RecordedReport): void {
    const delta = this.#ledger.accept(`${kind} ${frontendId} ${nodeId}`, report, atMs);
    const counted = this.#bins.get(frontendId);
    if (delta === undefined || counted === undefined) return;
    for (const { pool, offered } of delta.pools) {
      const index = this.#poolOf.get(pool);
      if (index === undefined) continue;
      counted.pools[index]! += offered;
      const middle = ((delta.fromMs + delta.toMs) / 2 - this.#startMs) / 1000;
      const bin = Math.max(0, Math.floor(middle / BIN_SECONDS));
      counted.bins[bin] = (counted.bins[bin] ?? 0) + offered;
    }
  }

  get total(): number {
    return [...this.#bins.values()].flatMap(({ pools }) => pools).reduce((a, b) => a + b, 0);
  }

  ratesOf(frontendId: string): (readonly [number, number])[] {
    const { bins } = this.#bins.get(frontendId)!;
    if (bins.length === 0) return [[0, 0]];
    return Array.from(bins, (count = 0, bin) => [bin * BIN_SECONDS, count / BIN_SECONDS] as const);
  }

  sharesOf(frontendId: string): number[] {
    const { pools } = this.#bins.get(frontendId)!;
    const total = pools.reduce((a, b) => a + b, 0);
    return pools.map((count, index) => (total === 0 ? (index === 0 ? 1 : 0) : count / total));
  }
}

/** Over all pools of a frontend, weighted by their rates. */
function meansOf({ input }: RecordedSolve, frontendId: string): RequestMeans {
  const own = input.state.demands.filter((demand) => demand.frontendId === frontendId);
  const used = own.length > 0 ? own : input.state.demands;
  const total = used.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
  const mean = (name: keyof RequestMeans) =>
    used.reduce(
      (sum, demand) =>
        sum + demand[name] * (total === 0 ? 1 / used.length : demand.requestsPerSecond / total),
      0,
    );
  return {
    promptTokens: mean('promptTokens'),
    uncachedPromptTokens: mean('uncachedPromptTokens'),
    outputTokens: mean('outputTokens'),
    followUpShare: mean('followUpShare'),
    turnGapSeconds: mean('turnGapSeconds'),
  };
}

function enginesOf({ input }: RecordedSolve, means: readonly RequestMeans[]): ScenarioEngine[] {
  const { profiles, state } = input;
  const over = (name: keyof RequestMeans) => means.reduce((sum, mix) => sum + mix[name], 0) / means.length;
  const mix = {
    promptTokens: over('promptTokens'),
    uncachedPromptTokens: over('uncachedPromptTokens'),
    outputTokens: over('outputTokens'),
  };
  return state.fleet.engines.flatMap((engine) => {
    const profile = profiles.get(engine.profile)!;
    const parameters = engineOf(profile, mix);
    const nominalRps = 1 / workSeconds(profile, mix);
    return engine.endpoints.map((address, replica) => ({
      id: engine.endpoints.length === 1 ? engine.id : `${engine.id}-${replica}`,
      ...{ engineId: engine.id, region: engine.region, labels: engine.labels },
      ...{ parameters, profile: profile.id, nominalRps, address },
    }));
  });
}

/** The headers that lead to a pool. */
function classOf(pool: Pool, { needs = [] }: Fleet, engines: readonly ScenarioEngine[]): RequestClass {
  const headers = pool.needs.flatMap((id) => headerOf(id, needs.find((need) => need.id === id)!.when));
  return {
    id: pool.id,
    headers: Object.fromEntries([[MODEL_HEADER, pool.model], ...headers]),
    eligible: engines.map(({ engineId }) => eligibleIds(pool).includes(engineId)),
  };
}

function headerOf(id: string, when: NeedCondition): [string, string][] {
  if (when.kind === 'header') return [[when.name, when.value ?? 'yes']];
  if (when.kind === 'path') return [[':path', when.prefix]];
  throw new WardropError(
    'WARDROP_RECORDING_INVALID',
    `the recording has requests with the need ${id}, which shows in bodies or tenants; only needs by header or path can be simulated`,
  );
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

/** By the simulated engines, as a profile that knows a rate only has no times of its own. */
function sloOf(
  { input }: RecordedSolve,
  means: readonly RequestMeans[],
  engines: readonly ScenarioEngine[],
): Scenario['slo'] {
  const [{ uncachedPromptTokens, outputTokens }] = means as [RequestMeans];
  const times = engines.map(({ profile, parameters: { stepBaseSeconds, secondsPerSequence } }) => {
    const ttft = Math.max(0.02, idleTtftSeconds(input.profiles.get(profile)!, uncachedPromptTokens));
    return { ttft, e2e: ttft + (outputTokens - 1) * (stepBaseSeconds + secondsPerSequence) };
  });
  return {
    ttftSeconds: SLO_TTFT * Math.max(...times.map(({ ttft }) => ttft)),
    e2eSeconds: SLO_E2E * Math.max(...times.map(({ e2e }) => e2e)),
  };
}

/** What the control server was configured with, as far as plans depend on it. */
function configOf({ input }: RecordedSolve): Config {
  const { fleet, demands } = input.state;
  const [frontend] = fleet.frontends;
  const stub = loadConfig('recording', () =>
    JSON.stringify({
      frontends: [{ id: frontend!.id, region: 'r' }],
      engines: [{ id: 'e', region: 'r', models: ['m'], endpoints: [] }],
    }),
  );
  const { profiles, policy } = input;
  const expectedDemand = demands.map(({ source: _, priority: __, ...demand }) => demand);
  return { ...stub, fleet, profiles, policy, expectedDemand };
}
