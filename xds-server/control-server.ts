import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import type { UsageReport } from '../wire/usage-report.js';
import { decodeUsageReport } from '../wire/usage-report-reader.js';
import { encodeUsageReport } from '../wire/usage-report-writer.js';
import { type AdminServer, startAdmin } from './admin/admin-server.js';
import { ServerMetrics } from './admin/server-metrics.js';
import type { ShownServer } from './admin/shown-server.js';
import type { Config, ServerSettings } from './config/config.js';
import { loadConfig } from './config/load.js';
import { ConfigError } from './config/problem.js';
import { Alarms } from './control/alarms/alarms.js';
import { raiseFleetAlarms, raisePeerAlarms, raiseSlowAlarms } from './control/alarms/raise-alarms.js';
import { isSameConfig, needsRestart, takeOver } from './control/config-difference.js';
import { ConfigWatch } from './control/config-watch.js';
import { ControlCycle, planInput, TICK_MS } from './control/cycle.js';
import { isUndiscovered, withDiscovered } from './control/discovered-fleet.js';
import { envoyOptions } from './control/envoy-options.js';
import { asFollowed, configId, PlanFollower } from './control/followed-plan.js';
import { HoldUps } from './control/hold-ups.js';
import { ratesOf } from './control/offline.js';
import { PlanHistory } from './control/plan-history.js';
import { makePlan, optimizerInput, type PlanInput, type PlanSolver, type Solver } from './control/planner.js';
import { type Publication, Publisher } from './control/publisher.js';
import { type Explained, type ExplainQuery, explainedPair } from './control/questions/explain.js';
import type { FilterRun } from './control/questions/filter-run.js';
import { Questions } from './control/questions/questions.js';
import { RecordedSignals } from './control/recording/recorded-signals.js';
import { type Recorder, Recorders } from './control/recording/recorders.js';
import { whyUnfit } from './control/saved-plan.js';
import { WardropError } from './errors.js';
import type { Address } from './fleet/fleet.js';
import type { EngineState } from './fleet/fleet-state.js';
import type { LoadReport } from './fleet/load-report.js';
import type { Orders } from './fleet/operations.js';
import { explain, type OptimizerInput, type Solution } from './optimizer/index.js';
import { mergedOrders } from './peers/merged-orders.js';
import type { LiveState, ToldReport } from './peers/peer-news.js';
import { type Followed, Peers, type PeerView } from './peers/peers.js';
import type { Plan } from './plan/plan.js';
import { PlanStore } from './plan/plan-store.js';
import type { ServerState } from './plan/server-state.js';
import type { Relief } from './plan/snapshot-view.js';
import { encodeState } from './plan/state-format.js';
import { readState } from './plan/state-salvage.js';
import { URGENT_STRENGTH } from './signals/demand/surge.js';
import { type Discovered, Discovery } from './signals/discovery/discovery.js';
import { type Lookup, systemLookup } from './signals/discovery/lookup.js';
import type { OperatorRequest } from './signals/operator-orders.js';
import type { LoadSources } from './signals/pages/engine-load.js';
import { EngineWatch } from './signals/pages/engine-watch.js';
import type { ProbeResult, ReplicaHealth } from './signals/readiness/replica-health.js';
import type { Signals, SignalsView } from './signals/signals.js';
import { LoadCounts } from './signals/usage/load-counts.js';
import { SnapshotBoard } from './sync/snapshot-board.js';
import { SyncServer } from './sync/sync-server.js';
import { frontendOf, type NodeIdentity, type NodeView, type ResourceStatus, XdsServer } from './xds/index.js';

export interface ControlServerOptions {
  readonly configFile: string;
  readonly optimizer: PlanSolver;
  /** Answers questions (what-if, headroom), so that these never delay a plan. */
  readonly questionSolver: Solver;
  /** The compiled filter. */
  readonly wasmModule: Uint8Array;
  /** Runs it outside of Envoy. */
  readonly runFilter: FilterRun;
  readonly log: Logger;
  /** Takes solves and all that signals are told, from the first moment on. */
  readonly recorder?: Recorder;
  /** Finds replicas; the system's DNS and files by default. */
  readonly lookup?: Lookup;
}

/** Start and reload wait this long for replicas that are to be found; later ones are taken when they come. */
const DISCOVERY_WAIT_MS = 3_000;
/** A first plan waits this long for every replica to be probed. */
const FIRST_PLAN_WAIT_MS = 1_500;
/** An Envoy that has not called for this long does not share limits with the others. */
const ENVOY_GONE_MS = 10_000;
const SLOW_ALARMS_INTERVAL_MS = 1_000;
/** What is measured goes into the state file this often, also while the plan stays the same. */
const SAVE_INTERVAL_MS = 60_000;
/** Nobody else has written the state file for this long: the alarm is over. */
const REPLACED_ALARM_MS = 300_000;
/** A plan of the leading control server that does not fit here is waited on for this long: configurations may be changing. */
const UNFIT_MS = 10_000;

/** Composition root: one control server, from its configuration file to its sockets. */
export class ControlServer implements ShownServer {
  readonly startedAtMs = Date.now();
  readonly alarms: Alarms;
  readonly signals: Signals;
  readonly board: SnapshotBoard;
  readonly engineWatch: EngineWatch;
  readonly questions: Questions;
  readonly recorders: Recorders;
  readonly runFilter: FilterRun;
  readonly peers: Peers;
  readonly #options: ControlServerOptions;
  readonly #metrics: ServerMetrics;
  readonly #log: Logger;
  readonly #store: PlanStore;
  #salt: string;
  readonly #xds: XdsServer;
  readonly #sync: SyncServer;
  readonly #publisher: Publisher;
  readonly #configWatch: ConfigWatch;
  readonly #cycle = new ControlCycle();
  readonly #holdUps = new HoldUps(Date.now());
  readonly #history = new PlanHistory();
  readonly #discovery: Discovery;
  readonly #follower = new PlanFollower();
  /** Why reports that peers tell of cannot be read, by node. */
  readonly #unreadTold = new Map<string, string>();
  #admin: AdminServer | undefined;
  /** As it was read, without replicas that were found. */
  #written: Config;
  #config: Config;
  /** Grows with every configuration; a solve for an older one is thrown away. */
  #generation = 0;
  #view: SignalsView;
  #plan: Plan | null;
  #isPublished = false;
  /** Whether this server makes the plans that it publishes. */
  #isPlanning = false;
  /** How things are at the control server whose plan is published. */
  #followedLive: LiveState | undefined;
  #unfitSinceMs: number | undefined;
  /** Envoys call peers that are not heard. */
  #isPartial = false;
  #configId: string;
  #solved: { readonly input: OptimizerInput; readonly solution: Solution } | undefined;
  #published: Publication | undefined;
  #isSolving = false;
  /** Why the last solve failed; null when it was good. */
  #failure: string | null = null;
  #slowAlarmsAtMs = 0;
  #savedAtMs = 0;
  #ticker: NodeJS.Timeout | undefined;
  #isTickDue = false;
  #reloading: Promise<boolean> = Promise.resolve(true);
  #stopped = false;

  /**
   * Loads the configuration and the state file, opens all sockets and starts to plan.
   *
   * @throws {ConfigError} for a configuration with problems
   */
  static async start(options: ControlServerOptions): Promise<ControlServer> {
    const config = loadConfig(options.configFile);
    const configWatch = new ConfigWatch([...config.files]);
    await configWatch.note();
    const store = new PlanStore(config.server.stateFile);
    const { state: saved, problem } = await store.load();
    const peers = new Peers({ server: config.server, now: Date.now });
    const joined = await peers.join();
    const state = joined === undefined ? saved : stateOf(joined, saved);
    let onFound = () => {};
    const discovery = new Discovery({ lookup: options.lookup ?? systemLookup(), onChange: () => onFound() });
    await atMost(DISCOVERY_WAIT_MS, discovery.watch(config.discovery, new Map(state?.discovered)));
    const server = new ControlServer(options, config, configWatch, discovery, store, peers, state);
    onFound = () => void server.#rediscover();
    if (problem !== null) server.alarms.raise('state-file', problem.message);
    for (const warning of config.warnings) options.log.warn({ ...warning }, warning.message);
    try {
      await server.#open();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private constructor(
    options: ControlServerOptions,
    written: Config,
    configWatch: ConfigWatch,
    discovery: Discovery,
    store: PlanStore,
    peers: Peers,
    state: ServerState | null,
  ) {
    const { log, configFile, wasmModule, runFilter } = options;
    const { config } = withDiscovered(written, discovery.discovered);
    this.#options = options;
    this.runFilter = runFilter;
    this.#written = written;
    this.#config = config;
    this.#configWatch = configWatch;
    this.#discovery = discovery;
    this.#store = store;
    this.peers = peers;
    this.#configId = configId(config);
    this.#log = log;
    log.level = config.server.logLevel;
    this.alarms = new Alarms(Date.now, log);
    this.#metrics = new ServerMetrics(this);
    this.#plan = state?.plan ?? null;
    this.#salt = state?.salt ?? randomBytes(16).toString('hex');
    this.recorders = new Recorders(options.recorder, () => signals.known(Date.now()));
    const signals = new RecordedSignals(config, ratesOf(this.#plan), Date.now(), (signal) =>
      this.recorders.record(signal),
    );
    this.signals = signals;
    if (state?.operations !== undefined) this.signals.resume(state.operations, Date.now());
    this.#view = this.signals.evaluate(Date.now());
    this.board = new SnapshotBoard(Date.now, state?.snapshotVersion);
    this.#xds = this.#xdsServer();
    this.#sync = this.#syncServer();
    this.#publisher = new Publisher({
      xds: this.#xds,
      board: this.board,
      salt: () => this.#salt,
      wasmModule,
      envoy: (frontendId) => envoyOptions(this.#config, frontendId),
      steered: () => this.#config.steered,
      relief: () => this.relief,
      edsIntervalMs: () => this.#config.server.edsIntervalSeconds * 1_000,
      now: Date.now,
    });
    this.engineWatch = new EngineWatch(
      (engineId, address, result) => this.#acceptProbe(engineId, address, result),
      (engineId, address, generated) => this.signals.acceptPage(engineId, address, generated, Date.now()),
    );
    this.questions = new Questions({
      solver: options.questionSolver,
      history: { since: (sequence) => this.#ownPlans().since(sequence) },
      input: () => {
        if (this.plan === null) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
        return optimizerInput(this.#planInput());
      },
    });
    log.info({ configFile }, 'configuration loaded');
  }

  /** What is known of replicas that are looked for, by engine id. */
  get discovered(): ReadonlyMap<string, Discovered> {
    return this.#discovery.discovered;
  }

  get config(): Config {
    return this.#config;
  }

  /** The plan in force, once it is published. */
  get plan(): Plan | null {
    return this.#isPublished ? this.#plan : null;
  }

  /** How the fleet looked at the last tick. */
  get view(): SignalsView {
    return this.#view;
  }

  /** How engines are relieved for now. */
  get relief(): Relief {
    return this.#followedLive?.relief ?? this.#cycle.relief;
  }

  /** Whether this server makes the plans that it publishes. */
  get isPlanning(): boolean {
    return this.#isPlanning;
  }

  /** Why the plan of the leading control server cannot be published here; null when it is. */
  get unfitReason(): string | null {
    return this.#unfitSinceMs === undefined ? null : this.#follower.unfitReason;
  }

  get adminAddress(): string {
    return this.#admin!.address;
  }

  /** Why a weight is what it is, by the last good solve. */
  explain(query: ExplainQuery): Explained {
    this.#ownPlans();
    if (this.#solved === undefined) throw new WardropError('WARDROP_NOT_READY', 'nothing is solved yet');
    const { input, solution } = this.#solved;
    const pair = explainedPair(query, input.state.fleet);
    const row = this.#plan?.rows.find(
      ({ frontendId, poolId }) => frontendId === pair.frontendId && poolId === pair.poolId,
    );
    return {
      planId: this.#plan?.id ?? null,
      solvedAtMs: input.state.atMs,
      failure: this.#failure,
      weightInForce:
        row?.weights.find(({ engineId }) => engineId === pair.engineId)?.weight ?? (row ? 0 : null),
      configuredNetworkSeconds: this.signals.correctedNetworkSeconds(pair.frontendId, pair.engineId) ?? null,
      capacity: this.#view.capacities.find(({ engineId }) => engineId === pair.engineId) ?? null,
      explanation: explain(input, solution, pair),
    };
  }

  /**
   * Does what an operator asks for; it is logged, listed and kept over restarts.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(request: OperatorRequest): void {
    this.signals.act(request, Date.now());
    this.#log.info({ ...request }, 'operator action');
    this.#tickSoon();
    void this.#save();
  }

  /** The other control servers. */
  peerViews(nowMs = Date.now()): readonly PeerView[] {
    return this.peers.views(nowMs, this.#configId);
  }

  nodes(): NodeView[] {
    return this.#xds.nodes();
  }

  /** Every resource that a connected Envoy asked for or was sent, by type URL. */
  resourcesOf(nodeId: string): Record<string, readonly ResourceStatus[]> {
    return this.#xds.resourcesOf(nodeId);
  }

  /** Reads the configuration again; true when it is in force, false when it has problems and nothing changed. */
  reload(reason: string): Promise<boolean> {
    this.#reloading = this.#reloading.then(() => this.#reload(reason));
    return this.#reloading;
  }

  /** Frees all sockets and timers; Envoys go on with what they have. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearInterval(this.#ticker);
    this.#discovery.stop();
    await this.#configWatch.stop();
    await this.#reloading;
    this.#publisher.stop();
    await this.peers.stop();
    await Promise.all([this.engineWatch.stop(), this.#sync.stop(), this.#xds.stop(), this.#admin?.stop()]);
    if (this.#isPublished) await this.#save();
  }

  #xdsServer(): XdsServer {
    const { token, tls, xdsListen } = this.#config.server;
    return new XdsServer({
      listen: xdsListen,
      ...(token !== undefined && { token }),
      ...(tls !== undefined && { tls: xdsTls(tls) }),
      resolveFrontend: (node: NodeIdentity) => frontendOf(node, this.#config.fleet.frontends),
      onNack: (nack) => this.#metrics.countNack(nack),
      loadReports: {
        clusters: () => this.#config.fleet.pools.map(({ id }) => id),
        open: (frontendId, nodeId) => this.#openLoadReports(frontendId, nodeId),
      },
      log: this.#log,
    });
  }

  #syncServer(): SyncServer {
    const { token, tls, syncListen } = this.#config.server;
    return new SyncServer({
      listen: syncListen,
      ...(token !== undefined && { token }),
      ...(tls !== undefined && { tls }),
      board: this.board,
      isFrontend: (id) => this.#config.fleet.frontends.some((frontend) => frontend.id === id),
      hasClusters: (nodeId) => this.#xds.hasClusters(nodeId) || this.peers.hasClusters(nodeId),
      onReport: (frontendId, nodeId, report, bytes) => {
        this.#tell('report', frontendId, nodeId, bytes);
        return this.#acceptReport(frontendId, nodeId, report);
      },
      ...(!this.peers.isAlone && { onPeer: (question, signal) => this.peers.answer(question, signal) }),
      onAnswer: (status) => this.#metrics.countSync(status),
      log: this.#log,
    });
  }

  /** Whether the next one is urgent, as a surge may have begun. */
  #acceptReport(frontendId: string, nodeId: string, report: UsageReport): boolean {
    const nowMs = Date.now();
    this.#noteHoldUp(nowMs);
    this.signals.acceptReport(frontendId, nodeId, report, nowMs);
    const strength = this.signals.surgeStrength(frontendId, nowMs);
    if (strength >= 1) this.#tickSoon();
    return strength >= URGENT_STRENGTH;
  }

  #acceptProbe(engineId: string, address: Address, result: ProbeResult): ReplicaHealth {
    const before = this.signals.health(address, Date.now());
    const health = this.signals.acceptProbe(engineId, address, result, Date.now());
    if (health.state !== before.state) this.#tickSoon();
    return health;
  }

  /** What takes the load reports of one stream. */
  #openLoadReports(frontendId: string, nodeId: string): (loads: LoadReport) => void {
    this.#log.info({ nodeId, frontendId }, 'an Envoy reports its load');
    const counts = new LoadCounts(randomBytes(8).readBigUInt64LE());
    return (loads) => {
      this.#noteHoldUp(Date.now());
      const report = counts.add(loads);
      this.#tell('load-report', frontendId, nodeId, encodeUsageReport(report));
      this.signals.acceptLoadReport(frontendId, nodeId, report, Date.now());
    };
  }

  /** Tells peers of a report that came here. */
  #tell(kind: ToldReport['kind'], frontendId: string, nodeId: string, bytes: Uint8Array): void {
    if (this.peers.isAlone) return;
    this.peers.noteCall(frontendId, nodeId);
    this.peers.board.addReport({ kind, frontendId, nodeId, bytes });
  }

  /** Takes a report that came to a peer. */
  #acceptTold({ kind, frontendId, nodeId, bytes }: ToldReport): void {
    if (!this.#config.fleet.frontends.some(({ id }) => id === frontendId)) return;
    try {
      const { vms, displaced } = decodeUsageReport(bytes);
      this.#unreadTold.delete(nodeId);
      if (kind === 'load-report') this.signals.acceptLoadReport(frontendId, nodeId, { vms }, Date.now());
      else this.#acceptReport(frontendId, nodeId, { vms });
      this.#sync.addDisplaced(frontendId, nodeId, displaced ?? []);
    } catch (error) {
      if (!(error instanceof WardropError)) throw error;
      this.#unreadTold.set(nodeId, error.message);
    }
  }

  /** Takes over what operators ordered at a peer. */
  #acceptOrders(orders: Orders): void {
    const { orders: own } = this.signals;
    const merged = mergedOrders(own, orders);
    if (isDeepStrictEqual(merged, own)) return;
    this.signals.takeOrders(merged, Date.now());
    this.#log.info({ actions: merged.actions.slice(-3) }, 'operator actions of another control server');
    this.#tickSoon();
    void this.#save();
  }

  #noteHoldUp(nowMs: number): void {
    if (!this.#holdUps.hasEnded(nowMs)) return;
    this.#log.warn('this process was held up; it goes on in a second, when it knows how things are');
    this.signals.noteHoldUp(nowMs);
  }

  async #open(): Promise<void> {
    const { adminListen } = this.#config.server;
    this.#admin = await startAdmin({
      listen: adminListen,
      server: this,
      metrics: this.#metrics,
      log: this.#log,
    });
    this.#isPlanning = this.peers.decide(Date.now());
    this.peers.start({
      own: () => ({
        configId: this.#configId,
        planSequence: this.plan?.sequence ?? null,
        orders: this.signals.orders,
      }),
      onReport: (report) => this.#acceptTold(report),
      onOrders: (orders) => this.#acceptOrders(orders),
      onChange: () => this.#tickSoon(),
    });
    await this.#xds.start();
    await this.#sync.start();
    this.#goOn();
    this.engineWatch.watch(this.#config.fleet, this.#config.upstreams);
    this.#configWatch.start(async () => void (await this.reload('the file changed')));
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Publishes the saved plan when it can serve the fleet of now. */
  #goOn(): void {
    const plan = this.#plan;
    if (plan === null || this.#isUndiscovered()) return;
    const { id: planId, sequence } = plan;
    const reason = whyUnfit(plan, this.#view.state);
    if (reason !== undefined) {
      this.#log.warn({ planId, sequence, reason }, 'the saved plan does not fit; waiting for a new one');
      return;
    }
    this.#log.info({ planId, sequence }, 'going on with the saved plan');
    this.#publish(plan);
  }

  /** Coalesces what happens within one turn of the event loop. */
  #tickSoon(): void {
    if (this.#isTickDue) return;
    this.#isTickDue = true;
    setImmediate(() => {
      this.#isTickDue = false;
      this.#tick();
    });
  }

  #tick(): void {
    if (this.#stopped || this.#ticker === undefined) return;
    const nowMs = Date.now();
    this.#noteHoldUp(nowMs);
    // Whoever waited for this process would seem to be silent.
    if (!this.#holdUps.isSettled(nowMs)) return;
    const seen = { config: this.#config, signals: this.signals, loads: this.loadSources };
    this.#cycle.passLoads(seen, nowMs);
    this.#view = this.signals.evaluate(nowMs);
    this.#follow(nowMs);
    this.#raiseAlarms(nowMs);
    const isOther = this.#cycle.relieve(seen, this.#view, this.#envoys(nowMs), nowMs);
    if (isOther && this.#followedLive === undefined) this.#publisher.refresh();
    if (this.#isPublished && nowMs - this.#savedAtMs >= SAVE_INTERVAL_MS) void this.#save();
    if (this.#published !== undefined && !isDeepStrictEqual(this.#published.engines, this.#engines())) {
      this.#publish(this.#plan!);
    }
    if (this.#published !== undefined && !this.peers.isAlone) {
      const live = { engines: this.#published.engines, relief: this.relief };
      this.peers.board.setLive(live, this.#xds.configuredNodes());
    }
    if (this.#isPlanning && !this.#isSolving && this.#isSolveDue(nowMs)) {
      this.#isSolving = true;
      void this.#solve().finally(() => {
        this.#isSolving = false;
        this.#tickSoon();
      });
    }
  }

  /** Decides who makes the plans; those of another control server are published here. */
  #follow(nowMs: number): void {
    if (this.peers.isAlone) {
      this.#isPlanning = this.peers.decide(nowMs);
      return;
    }
    const isPartial = this.peers.unheard(nowMs).length + this.#unreadTold.size > 0;
    if (isPartial !== this.#isPartial) this.signals.notePartial(isPartial, nowMs);
    this.#isPartial = isPartial;
    const leads = this.peers.decide(nowMs);
    const { followed } = this.peers;
    if (leads || followed === undefined) this.#setFollowed(undefined);
    else this.#takePlan(followed, nowMs);
    const isUnfit = this.#unfitSinceMs !== undefined && nowMs - this.#unfitSinceMs >= UNFIT_MS;
    const isPlanning = leads || isUnfit;
    if (isPlanning !== this.#isPlanning) {
      const { leader } = this.peers;
      this.#log.info(
        { isPlanning, leader, reason: this.unfitReason },
        'another control server makes the plans',
      );
      this.#isPlanning = isPlanning;
    }
  }

  #takePlan(followed: Followed, nowMs: number): void {
    const read = this.#follower.planFor(followed, this.#view.state);
    if (read === undefined) {
      if (this.#follower.unfitReason !== null) this.#unfitSinceMs ??= nowMs;
      if (this.#isPlanning) this.#setFollowed(undefined);
      return;
    }
    this.#unfitSinceMs = undefined;
    const { plan, salt } = read;
    const isSame = this.#published !== undefined && this.#plan?.id === plan.id && this.#salt === salt;
    this.#setFollowed(followed.live);
    if (isSame) return;
    if (this.#plan?.id !== plan.id) {
      const { id: planId, sequence } = plan;
      this.#log.info(
        { planId, sequence, from: followed.address },
        'a plan of another control server is in force',
      );
    }
    this.#plan = plan;
    this.#salt = salt;
    this.#publish(plan);
  }

  #setFollowed(live: LiveState | undefined): void {
    const before = this.relief;
    this.#followedLive = live;
    if (!isDeepStrictEqual(before, this.relief)) this.#publisher.refresh();
  }

  /** Engines as snapshots are to show them. */
  #engines(): readonly EngineState[] {
    const { engines } = this.#view.state;
    return this.#followedLive === undefined ? engines : asFollowed(engines, this.#followedLive.engines);
  }

  /** How many Envoys share limits, by the id of their frontend. */
  #envoys(nowMs: number): ReadonlyMap<string, number> {
    const counts = new Map(this.board.envoysSince(nowMs - ENVOY_GONE_MS));
    for (const { frontendId } of this.peers.envoys(nowMs)) {
      counts.set(frontendId, (counts.get(frontendId) ?? 0) + 1);
    }
    return counts;
  }

  /**
   * What was planned here.
   *
   * @throws {WardropError} WARDROP_NOT_READY when another control server makes the plans
   */
  #ownPlans(): PlanHistory {
    if (this.#isPlanning) return this.#history;
    const { leader } = this.peers;
    const who = leader === undefined ? 'another control server' : `the control server at ${leader}`;
    throw new WardropError('WARDROP_NOT_READY', `${who} makes the plans; ask its admin API for the reasons`);
  }

  /** Where engines say how much they have to do. */
  get loadSources(): LoadSources {
    return {
      pages: this.engineWatch.readings,
      responses: (address) => this.signals.totals.load(address),
    };
  }

  #isSolveDue(nowMs: number): boolean {
    if (!this.#isPublished && this.#isUndiscovered()) return false;
    const isWaiting = !this.#cycle.schedule.hasBegun && !this.#isPublished && !this.#isObserved(nowMs);
    return !isWaiting && this.#cycle.isDue(this.#generation, this.#view, this.#isPublished, nowMs);
  }

  /** Nothing is published before it is known who could serve: Envoys that have something would lose it. */
  #isUndiscovered(): boolean {
    return isUndiscovered(this.#config.fleet, this.#config.discovery, this.#discovery.discovered);
  }

  /** Whether every replica was probed, or nothing more is waited for. */
  #isObserved(nowMs: number): boolean {
    if (nowMs - this.startedAtMs >= FIRST_PLAN_WAIT_MS) return true;
    return this.#config.fleet.engines.every((engine) =>
      engine.endpoints.every((address) => this.signals.health(address, nowMs).state !== 'unknown'),
    );
  }

  async #solve(): Promise<void> {
    const startedMs = Date.now();
    const generation = this.#generation;
    this.#cycle.schedule.begin(generation, this.#view.state, startedMs);
    this.recorders.record({ kind: 'plan', atMs: startedMs });
    const times: number[] = [];
    const planInput = { ...this.#planInput(), nowMs: () => noted(times, Date.now()) };
    const outcome = await makePlan(this.#options.optimizer, planInput);
    this.#metrics.observeSolve((Date.now() - startedMs) / 1_000, outcome.failure?.code);
    if (this.#stopped || generation !== this.#generation || !this.#isPlanning) return;
    const { input, solution, plan, failure } = outcome;
    const { nowMs: _nowMs, ...recorded } = planInput;
    this.recorders.record({ kind: 'solve', input: recorded, times, plan });
    if (solution !== undefined) this.#solved = { input, solution };
    this.#reportFailure(failure, plan !== null);
    // The same plan still has to be published for another fleet.
    if (plan === null || plan === this.#published?.plan) return;
    if (plan !== this.#plan) {
      const { id: planId, sequence } = plan;
      this.#log.info({ planId, sequence, solveMs: Date.now() - startedMs }, 'a new plan is in force');
      this.#history.add(plan, input);
    }
    this.#plan = plan;
    this.#publish(plan);
  }

  #reportFailure(failure: WardropError | undefined, hasPlan: boolean): void {
    this.#cycle.schedule.end(failure === undefined);
    this.#failure = failure?.message ?? null;
    if (failure === undefined) {
      this.alarms.clear('planning');
      return;
    }
    const stays = hasPlan ? 'the last good plan stays in force' : 'there is no plan to fall back on';
    this.#log.error({ code: failure.code, err: failure }, 'planning failed');
    this.alarms.raise('planning', `${failure.code}: ${failure.message}; ${stays}`);
  }

  #planInput(): PlanInput {
    return planInput(this.#config, this.#view, this.#plan, Date.now);
  }

  #publish(plan: Plan): void {
    const { configuredFleet: fleet, state } = this.#view;
    const engines = this.#engines();
    this.#published = { plan, fleet, networkSeconds: state.fleet.networkSeconds, engines };
    this.#isPublished = true;
    this.#publisher.publish(this.#published);
    void this.#save();
  }

  async #save(): Promise<void> {
    this.#savedAtMs = Date.now();
    const state: ServerState = {
      plan: this.#plan,
      snapshotVersion: this.board.lastVersion,
      salt: this.#salt,
      operations: this.signals.operations,
      discovered: [...this.#discovery.discovered].flatMap(([id, { addresses }]) =>
        addresses === undefined ? [] : [[id, addresses] as const],
      ),
    };
    if (!this.peers.isAlone) this.peers.board.setState(encodeState(state));
    try {
      await this.#store.save(state);
      const replacedAtMs = this.#store.foundReplacedAtMs;
      if (replacedAtMs === undefined || Date.now() - replacedAtMs > REPLACED_ALARM_MS) {
        this.alarms.clear('state-file');
      } else {
        this.alarms.raise(
          'state-file',
          `something else writes state file ${this.#config.server.stateFile}, too: run one control server, or give each a file of its own`,
        );
      }
    } catch (error) {
      this.alarms.raise('state-file', (error as Error).message);
    }
  }

  async #reload(reason: string): Promise<boolean> {
    let config: Config;
    try {
      config = loadConfig(this.#options.configFile);
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      for (const problem of error.problems) this.#log.error({ ...problem }, 'configuration problem');
      this.#metrics.countReload(false);
      this.alarms.raise(
        'config',
        `the configuration in force stays, because the new one has problems:\n${error.message}`,
      );
      return false;
    }
    this.#configWatch.setFiles(config.files);
    this.#metrics.countReload(true);
    this.alarms.clear('config');
    if (!needsRestart(this.#config.server, config.server)) this.alarms.clear('restart-needed');
    else this.alarms.raise('restart-needed', 'changed server settings take effect at the next start');
    // What is looked for now and was listed before stays until it is found.
    const engines = this.#config.fleet.engines.filter(({ endpoints }) => endpoints.length > 0);
    const known = new Map(engines.map(({ id, endpoints }) => [id, endpoints]));
    await atMost(DISCOVERY_WAIT_MS, this.#discovery.watch(config.discovery, known));
    this.#written = config;
    for (const warning of config.warnings) this.#log.warn({ ...warning }, warning.message);
    return this.#apply(reason);
  }

  /** Takes the replicas that are known now. */
  #rediscover(): Promise<boolean> {
    this.#reloading = this.#reloading.then(() => this.#apply('replicas came or went'));
    return this.#reloading;
  }

  /** Makes the configuration that was read last the one in force, with the replicas that were found. */
  async #apply(reason: string): Promise<boolean> {
    const { config } = withDiscovered(this.#written, this.#discovery.discovered);
    if (isSameConfig(config, this.#config)) {
      this.#log.info({ reason }, 'the configuration is the same as before');
      return true;
    }
    // One change of the fleet at a time, so that no endpoint is removed while a snapshot may still name it.
    await this.#publisher.idle();
    if (this.#stopped) return false;
    this.#config = takeOver(this.#config, config);
    this.#configId = configId(this.#config);
    this.#log.level = this.#config.server.logLevel;
    this.#generation++;
    this.signals.reconfigure(this.#config, Date.now());
    this.engineWatch.watch(this.#config.fleet, this.#config.upstreams);
    this.#log.info({ reason }, 'configuration in force');
    this.#published = undefined;
    // The kill switch does not wait for a plan.
    this.#publisher.refresh();
    this.#tickSoon();
    return true;
  }

  #raiseAlarms(nowMs: number): void {
    const seen = {
      fleet: this.#config.fleet,
      view: this.#view,
      signals: this.signals,
      readings: this.engineWatch.readings,
      discoveryProblems: withDiscovered(this.#written, this.#discovery.discovered).problems,
      plan: this.plan,
    };
    raiseFleetAlarms(this.alarms, seen, nowMs);
    if (nowMs - this.#slowAlarmsAtMs < SLOW_ALARMS_INTERVAL_MS) return;
    this.#slowAlarmsAtMs = nowMs;
    const envoys = {
      nodes: this.#xds.nodes(),
      holders: [...this.board.holders(), ...this.peers.envoys(nowMs)],
      unread: new Map([...this.#sync.unreadNodes(nowMs), ...this.#unreadTold]),
    };
    raiseSlowAlarms(this.alarms, this.#view, envoys, nowMs);
    raisePeerAlarms(this.alarms, this.peerViews(nowMs), this.unfitReason);
  }
}

/** What a peer knows, with the snapshot version of our own; the file's own where it cannot be read. */
function stateOf(joined: string, saved: ServerState | null): ServerState | null {
  try {
    const { state } = readState(joined);
    return { ...state, snapshotVersion: Math.max(state.snapshotVersion, saved?.snapshotVersion ?? 0) };
  } catch {
    return saved;
  }
}

function noted(times: number[], nowMs: number): number {
  times.push(nowMs);
  return nowMs;
}

function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}

function xdsTls({ cert, key, clientCa }: NonNullable<ServerSettings['tls']>) {
  return {
    certificate: Buffer.from(cert),
    key: Buffer.from(key),
    ...(clientCa === undefined ? {} : { clientCa: Buffer.from(clientCa) }),
  };
}
