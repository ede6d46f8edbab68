import { readFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import type { UsageReport } from '../../wire/usage-report.js';
import type { Config } from '../../xds-server/config/config.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { ratesOf } from '../../xds-server/control/offline.js';
import { makePlan } from '../../xds-server/control/planner.js';
import { SolveSchedule } from '../../xds-server/control/solve-schedule.js';
import { withTrickle } from '../../xds-server/control/trickle.js';
import { LocalExecutor } from '../../xds-server/optimizer/executor.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import type { Plan } from '../../xds-server/plan/plan.js';
import { Signals, type SignalsView } from '../../xds-server/signals/signals.js';
import { packageFile } from '../virtual/package-root.js';
import type { Scenario } from '../virtual/scenario.js';

export const MODEL = 'm';
/** Virtual time 0, in milliseconds since the epoch. */
export const EPOCH_MS = 1_700_000_000_000;

export function wallMs(now: number): number {
  return EPOCH_MS + now * 1000;
}

/** The only replica of an engine. */
export function addressOf(engine: number): string {
  return `10.0.${engine}.1:8000`;
}

/** Multiplies all times of a profile: above 1, the operator takes the engine for slower than it is. */
export type ProfileError = (engineId: string) => number;

export interface ControlLoopOptions {
  /** Default: the profiles are right. */
  readonly profileError?: ProfileError | undefined;
  /** Whether engines that turn slow get less; default false, as shipped. */
  readonly enforcesPenalties?: boolean;
}

/**
 * The control server of Wardrop without its sockets: configuration, signals, schedule, optimizer and plan are the
 * shipped ones; reports and probes come in, plans come out, all in virtual time.
 */
export class ControlLoop {
  readonly config: Config;
  plan: Plan | null = null;
  view: SignalsView;
  failures = 0;
  readonly #signals: Signals;
  readonly #schedule = new SolveSchedule();
  readonly #optimizer: Optimizer;

  constructor(
    scenario: Scenario,
    { profileError = () => 1, enforcesPenalties = false }: ControlLoopOptions = {},
  ) {
    this.config = configOf(scenario, profileError, enforcesPenalties);
    this.#signals = new Signals(this.config, ratesOf(null), EPOCH_MS);
    this.#optimizer = new Optimizer({ executor: () => new LocalExecutor() });
    this.view = this.#signals.evaluate(EPOCH_MS);
  }

  report(frontendId: string, report: UsageReport, atMs: number): void {
    this.#signals.acceptReport(frontendId, `envoy-${frontendId}`, report, atMs);
  }

  probe(engineId: string, address: string, isUp: boolean, atMs: number): void {
    const down = { ok: false, kind: 'refused', detail: 'connection refused' } as const;
    this.#signals.acceptProbe(engineId, address, isUp ? { ok: true } : down, atMs);
  }

  /** Looks at the signals and plans when there is something to plan for; true with news for frontends. */
  async step(atMs: number): Promise<boolean> {
    const before = JSON.stringify(this.view.state.engines);
    this.view = this.#signals.evaluate(atMs);
    const isHealthNews = JSON.stringify(this.view.state.engines) !== before;
    const { state } = this.view;
    if (!this.#schedule.isDue(1, state, atMs)) return isHealthNews;
    this.#schedule.begin(1, state, atMs);
    const { profiles, policy } = this.config;
    const input = {
      previous: this.plan,
      state,
      profiles,
      policy: withTrickle(policy, state),
      nowMs: () => atMs,
    };
    const { plan, failure } = await makePlan(this.#optimizer, input);
    this.#schedule.end(failure === undefined);
    if (failure !== undefined) this.failures++;
    const isNew = plan !== this.plan;
    this.plan = plan;
    return isNew || isHealthNews;
  }

  /** Weights of a frontend by engine in the scenario's order. */
  weightsOf(scenario: Scenario, frontend: number): readonly number[] {
    const { id } = scenario.frontends[frontend]!;
    const row = this.plan?.rows.find(({ frontendId }) => frontendId === id);
    return scenario.engines.map(
      (engine) => row?.weights.find(({ engineId }) => engineId === engine.id)?.weight ?? 0,
    );
  }

  close(): Promise<void> {
    return this.#optimizer.close();
  }
}

/** What an operator would write for this fleet; profiles are what `wardrop fit` made of benchmarks. */
function configOf(scenario: Scenario, profileError: ProfileError, enforcesPenalties: boolean): Config {
  const { frontends, engines, rttMs } = scenario;
  const file = {
    server: {
      xds: { listen: '127.0.0.1:18000' },
      sync: { listen: '127.0.0.1:18001' },
      admin: { listen: '127.0.0.1:18002' },
      stateFile: 'state.json',
    },
    frontends: frontends.map(({ id }, index) => ({ id, region: id, listen: `127.0.0.1:${10_000 + index}` })),
    engines: engines.map(({ id }, index) => ({
      id,
      region: id,
      models: [MODEL],
      profile: `profile-${id}`,
      endpoints: [addressOf(index)],
      metrics: { kind: 'none' },
    })),
    network: {
      rttMs: Object.fromEntries(
        frontends.map(({ id }, row) => [
          id,
          Object.fromEntries(engines.map((engine, column) => [engine.id, rttMs[row]![column]])),
        ]),
      ),
    },
    profiles: Object.fromEntries(
      engines.map(({ id, profile }) => [`profile-${id}`, scaled(readProfile(profile), profileError(id))]),
    ),
    demand: Object.fromEntries(
      frontends.map(({ id, source }, index) => [
        id,
        { requestsPerSecond: scenario.expectedRps[index], ...source.expected },
      ]),
    ),
    policy: { outlierPenalty: enforcesPenalties ? 'enforce' : 'observe' },
  };
  return loadConfig('scenario.yaml', () => stringify(file));
}

interface ProfileFile {
  readonly work: Readonly<Record<string, number>>;
  readonly ttft: Readonly<Record<string, number>>;
  readonly tbot: { readonly baseSeconds: number; readonly kappa: number };
  readonly maxFittedRho: number;
}

function readProfile(id: string): ProfileFile {
  const file = packageFile('simulator', 'profiles', `${id}.yaml`);
  const { profiles } = parse(readFileSync(file, 'utf8')) as { profiles: Record<string, ProfileFile> };
  return profiles[id]!;
}

function scaled({ work, ttft, tbot, maxFittedRho }: ProfileFile, factor: number): ProfileFile {
  const times = (values: Readonly<Record<string, number>>) =>
    Object.fromEntries(Object.entries(values).map(([name, seconds]) => [name, seconds * factor]));
  return {
    work: times(work),
    ttft: times(ttft),
    tbot: { ...tbot, baseSeconds: tbot.baseSeconds * factor },
    maxFittedRho,
  };
}
