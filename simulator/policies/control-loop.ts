import { stringify } from 'yaml';
import type { UsageReport } from '../../wire/usage-report.js';
import type { Config } from '../../xds-server/config/config.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { ControlCycle, planInput } from '../../xds-server/control/cycle.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { LocalExecutor } from '../../xds-server/optimizer/thread/executor.js';
import { makePlan } from '../../xds-server/plan/make-plan.js';
import type { Plan } from '../../xds-server/plan/plan.js';
import type { Relief } from '../../xds-server/plan/protection/relief.js';
import type { LoadSources } from '../../xds-server/signals/pages/engine-load.js';
import { ReplicaReading } from '../../xds-server/signals/pages/replica-reading.js';
import { Signals, type SignalsView } from '../../xds-server/signals/signals.js';
import { fittedProfile, slowed } from '../fitted-profile.js';
import { envoysOf, type Scenario, type ScenarioPool } from '../scenario.js';
import type { EngineTelemetry } from './policy.js';

const MODEL = 'm';
/** The configuration stays the same. */
const GENERATION = 1;
/** Virtual time 0, in milliseconds since the epoch. */
export const EPOCH_MS = 1_700_000_000_000;

export function wallMs(now: number): number {
  return EPOCH_MS + now * 1000;
}

/** Of a replica. */
export function addressOf({ engines }: Pick<Scenario, 'engines'>, index: number): string {
  return engines[index]!.address ?? `10.0.${index >> 8}.${index & 255}:8000`;
}

/** Id of an Envoy as a node of xDS. */
export function nodeOf(envoy: number): string {
  return `envoy-${envoy}`;
}

export interface ControlLoopOptions {
  /** Whether engines that turn slow get less; default: as shipped, or as configured. */
  readonly outlierPenalty?: Config['outlierPenalty'] | undefined;
}

/**
 * The control server of Wardrop without its sockets: configuration, signals, schedule, optimizer and plan are the
 * shipped ones; reports and probes come in, plans come out, all in virtual time.
 */
export class ControlLoop {
  readonly config: Config;
  plan: Plan | null = null;
  view: SignalsView;
  /** Ids of the scenario's pools in the configuration. */
  readonly poolIds: readonly string[];
  readonly #scenario: Scenario;
  readonly #frontendOf: readonly number[];
  readonly #signals: Signals;
  readonly #pages = new Map<string, ReplicaReading>();
  readonly #loads: LoadSources = { pages: this.#pages, responses: () => undefined };
  readonly #cycle = new ControlCycle();
  readonly #envoys: ReadonlyMap<string, number>;
  readonly #optimizer: Optimizer;

  constructor(scenario: Scenario, { outlierPenalty }: ControlLoopOptions = {}) {
    const config = believed(scenario.config ?? configOf(scenario), scenario);
    this.#scenario = scenario;
    this.#frontendOf = envoysOf(scenario);
    this.#envoys = new Map(scenario.frontends.map(({ id, envoys = 1 }) => [id, envoys]));
    this.config = { ...config, outlierPenalty: outlierPenalty ?? config.outlierPenalty };
    this.poolIds = scenario.pools.map((pool) =>
      scenario.config === undefined ? idOf(pool, this.config, scenario) : pool.id,
    );
    this.#signals = new Signals(this.config, [], EPOCH_MS);
    this.#optimizer = new Optimizer({ executor: () => new LocalExecutor() });
    this.view = this.#signals.evaluate(EPOCH_MS);
  }

  /** `envoy`: counted over all frontends. */
  report(envoy: number, report: UsageReport, atMs: number): void {
    const { id } = this.#scenario.frontends[this.#frontendOf[envoy]!]!;
    this.#signals.acceptReport(id, nodeOf(envoy), report, atMs);
  }

  probe(engineId: string, address: string, isUp: boolean, atMs: number): void {
    const down = { ok: false, kind: 'refused', detail: 'connection refused' } as const;
    this.#signals.acceptProbe(engineId, address, isUp ? { ok: true } : down, atMs);
  }

  /** Takes what the metrics pages of all replicas say, in the scenario's order. */
  readPages(pages: readonly Pick<EngineTelemetry, 'running' | 'waiting'>[], atMs: number): void {
    pages.forEach(({ running, waiting }, index) => {
      const address = addressOf(this.#scenario, index);
      const reading = this.#pages.get(address) ?? new ReplicaReading(['running', 'waiting']);
      this.#pages.set(address, reading);
      const page = { running, waiting };
      reading.accept(
        new Map(Object.entries(page).map(([name, value]) => [name as 'running', { value, source: name }])),
        atMs,
      );
    });
  }

  /** How engines are relieved for now. */
  get relief(): Relief {
    return this.#cycle.relief;
  }

  /** Looks at the signals and plans when there is something to plan for; true with news for frontends. */
  async step(atMs: number): Promise<boolean> {
    const before = JSON.stringify(this.view.state.engines);
    const seen = { config: this.config, signals: this.#signals, loads: this.#loads };
    this.#cycle.passLoads(seen, atMs);
    this.view = this.#signals.evaluate(atMs);
    const { state } = this.view;
    const isRelieved = this.#cycle.relieve(seen, this.view, this.#envoys, atMs);
    const isNews = isRelieved || JSON.stringify(state.engines) !== before;
    if (!this.#cycle.isDue(GENERATION, this.view, this.plan !== null, atMs)) return isNews;
    this.#cycle.schedule.begin(GENERATION, state, atMs);
    const input = planInput(this.config, this.view, this.plan);
    const { plan, failure } = await makePlan(this.#optimizer, input, () => atMs);
    this.#cycle.schedule.end(failure === undefined);
    const isNew = plan !== this.plan;
    this.plan = plan;
    return isNew || isNews;
  }

  /** Weights of a frontend for a pool by replica in the scenario's order. */
  weightsOf(frontend: number, pool: number): readonly number[] {
    const { frontends, engines } = this.#scenario;
    const { id } = frontends[frontend]!;
    const poolId = this.poolIds[pool]!;
    const row = this.plan?.rows.find((other) => other.frontendId === id && other.poolId === poolId);
    return engines.map(({ engineId }) => {
      const weight = row?.weights.find((other) => other.engineId === engineId)?.weight ?? 0;
      return weight / this.#replicas(engineId);
    });
  }

  #replicas(engineId: string): number {
    return this.#scenario.engines.filter((engine) => engine.engineId === engineId).length;
  }

  close(): Promise<void> {
    return this.#optimizer.close();
  }
}

/** What an operator would write for this fleet; profiles are what `wardrop fit` made of benchmarks. */
function configOf(scenario: Scenario): Config {
  const { frontends, engines, rttMs, classes } = scenario;
  const engineIds = [...new Set(engines.map(({ engineId }) => engineId))];
  const file = {
    server: { stateFile: 'state.json' },
    frontends: frontends.map(({ id, region }) => ({ id, region })),
    engines: engineIds.map((id) => {
      const replicas = engines.flatMap((engine, at) => (engine.engineId === id ? [{ engine, at }] : []));
      const { region, labels = {}, profile } = replicas[0]!.engine;
      const endpoints = replicas.map(({ at }) => addressOf(scenario, at));
      return { id, region, models: [MODEL], labels, profile, endpoints, metrics: { kind: 'vllm' } };
    }),
    network: {
      rttMs: Object.fromEntries(
        frontends.map(({ id }, row) => [
          id,
          Object.fromEntries(engines.map(({ engineId }, column) => [engineId, finite(rttMs[row]![column]!)])),
        ]),
      ),
    },
    profiles: Object.fromEntries(engines.map(({ profile }) => [profile, fittedProfile(profile)])),
    demand: Object.fromEntries(
      frontends.map(({ id, demands: [demand] }) => [
        id,
        { requestsPerSecond: demand!.expectedRps, ...demand!.source.expected },
      ]),
    ),
    needs: Object.fromEntries(
      classes.flatMap(({ need }) =>
        need === undefined ? [] : [[need.name, { when: { header: need.headers }, engines: need.labels }]],
      ),
    ),
    classes: Object.fromEntries(
      classes.flatMap(({ priority }) =>
        priority === undefined
          ? []
          : [[priority.name, { when: { header: priority.headers }, priority: priority.value }]],
      ),
    ),
  };
  return loadConfig('scenario.yaml', () => stringify(file));
}

function finite(ms: number): number | null {
  return ms < Number.POSITIVE_INFINITY ? ms : null;
}

/** The pool of the configuration whose engines are those that may serve this one. */
function idOf({ eligible }: ScenarioPool, { fleet }: Config, { engines }: Scenario): string {
  const ids = new Set(engines.flatMap(({ engineId }, at) => (eligible[at] ? [engineId] : [])));
  const pool = fleet.pools.find(
    ({ engineIds }) => engineIds.length === ids.size && engineIds.every((id) => ids.has(id)),
  );
  if (pool === undefined) throw new Error(`no pool has the engines ${[...ids].join(', ')}`);
  return pool.id;
}

/** The configuration with profiles as operators believe them: engines that they are wrong about have one of their own. */
function believed(config: Config, { engines }: Scenario): Config {
  const profiles = new Map(config.profiles);
  const fleetEngines = config.fleet.engines.map((engine) => {
    const { believedSlowness = 1 } = engines.find(({ engineId }) => engineId === engine.id) ?? {};
    if (believedSlowness === 1) return engine;
    const id = `${engine.profile}~${engine.id}`;
    const profile = { ...slowed(profiles.get(engine.profile)!, believedSlowness), id };
    profiles.set(profile.id, profile);
    return { ...engine, profile: profile.id };
  });
  return { ...config, profiles, fleet: { ...config.fleet, engines: fleetEngines } };
}
