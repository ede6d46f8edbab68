import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Logger } from 'pino';
import { encodeUsageReport } from '../wire/usage-report-writer.js';
import { type AdminServer, startAdmin } from './admin/admin-server.js';
import { ServerMetrics } from './admin/metrics/server-metrics.js';
import type { ShownServer } from './admin/shown-server.js';
import type { Config } from './config/config.js';
import { Alarms } from './control/alarms/alarms.js';
import { raiseFleetAlarms, raisePeerAlarms, raiseSlowAlarms } from './control/alarms/raise-alarms.js';
import { ControlCycle, planInput, TICK_MS } from './control/cycle.js';
import { envoySockets } from './control/intake/envoy-sockets.js';
import { Intake } from './control/intake/intake.js';
import { PeerIntake } from './control/intake/peer-intake.js';
import { LiveConfig } from './control/live-config/live-config.js';
import { ratesOf } from './control/offline/offline.js';
import { FirstPlan } from './control/planning/first-plan.js';
import { Planning } from './control/planning/planning.js';
import { envoyOptions } from './control/publishing/envoy-options.js';
import { type Publication, Publisher } from './control/publishing/publisher.js';
import { type Explained, type ExplainQuery, explainSolved } from './control/questions/explain.js';
import type { FilterRun } from './control/questions/filter-run.js';
import { Questions } from './control/questions/questions.js';
import { RecordedSignals } from './control/recording/recorded-signals.js';
import { type Recorder, Recorders } from './control/recording/recorders.js';
import { type LeftSignals, SignalsFile } from './control/restart/signals-file.js';
import { startingState } from './control/restart/starting-state.js';
import { StateKeeper } from './control/restart/state-keeper.js';
import { WardropError } from './errors.js';
import type { Solution } from './optimizer/index.js';
import { configId, type FollowedPlan } from './peers/followed-plan.js';
import { Following } from './peers/following.js';
import { Peers, type PeerView } from './peers/peers.js';
import { optimizerInput, type PlanSolver, type Solver } from './plan/make-plan.js';
import type { Plan } from './plan/plan.js';
import type { Relief } from './plan/snapshot-view.js';
import { PlanStore } from './plan/state-file/plan-store.js';
import type { ServerState } from './plan/state-file/server-state.js';
import { encodeState } from './plan/state-file/state-format.js';
import { whyUnfit } from './plan/why-unfit.js';
import type { Discovered } from './signals/discovery/discovery.js';
import type { Lookup } from './signals/discovery/lookup.js';
import type { OperatorRequest } from './signals/operator-orders.js';
import type { LoadSources } from './signals/pages/engine-load.js';
import { EngineWatch } from './signals/pages/engine-watch.js';
import type { Signals, SignalsView } from './signals/signals.js';
import { now } from './steady-clock.js';
import { SnapshotBoard } from './sync/snapshot-board.js';
import type { SyncServer } from './sync/sync-server.js';
import type { NodeView, ResourceStatus, XdsServer } from './xds/index.js';

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

/** An Envoy that has not called for this long does not share limits with the others. */
const ENVOY_GONE_MS = 10_000;
const SLOW_ALARMS_INTERVAL_MS = 1_000;

/** Composition root: one control server, from its configuration file to its sockets. */
export class ControlServer implements ShownServer {
  readonly startedAtMs = now();
  readonly alarms: Alarms;
  readonly signals: Signals;
  readonly board: SnapshotBoard;
  readonly engineWatch: EngineWatch;
  readonly questions: Questions;
  readonly recorders: Recorders;
  readonly runFilter: FilterRun;
  readonly peers: Peers;
  readonly #metrics: ServerMetrics;
  readonly #log: Logger;
  readonly #live: LiveConfig;
  readonly #firstPlan: FirstPlan;
  readonly #intake: Intake;
  readonly #peerIntake: PeerIntake;
  readonly #following: Following;
  readonly #keeper: StateKeeper;
  readonly #planning: Planning;
  readonly #xds: XdsServer;
  readonly #sync: SyncServer;
  readonly #publisher: Publisher;
  readonly #cycle = new ControlCycle();
  /** What signals knew was left by a control server before. */
  readonly #hasGoneOn: boolean;
  #admin: AdminServer | undefined;
  #salt: string;
  #configId: string;
  #view: SignalsView;
  /** Undefined until a plan is published, and again until one is for another configuration. */
  #published: Publication | undefined;
  #isPublished = false;
  #slowAlarmsAtMs = 0;
  #ticker: NodeJS.Timeout | undefined;
  #isTickDue = false;
  #stopped = false;

  /**
   * Loads the configuration and the state file, opens all sockets and starts to plan.
   *
   * @throws {ConfigError} for a configuration with problems
   */
  static async start(options: ControlServerOptions): Promise<ControlServer> {
    const live = LiveConfig.read(options.configFile, options.lookup);
    const store = new PlanStore(live.current.server.stateFile);
    const peers = new Peers({ server: live.current.server, now });
    const { state, problem } = await startingState(store, peers);
    await live.discover(new Map(state?.discovered));
    const left = await new SignalsFile(live.current.server.stateFile).take(live.current, now());
    const server = new ControlServer(options, live, store, peers, state, left);
    if (problem !== null) server.alarms.raise('state-file', problem.message);
    for (const warning of live.current.warnings) options.log.warn({ ...warning }, warning.message);
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
    live: LiveConfig,
    store: PlanStore,
    peers: Peers,
    state: ServerState | null,
    left: LeftSignals | undefined,
  ) {
    const { log, configFile, optimizer, wasmModule, runFilter } = options;
    const config = live.current;
    this.runFilter = runFilter;
    this.#live = live;
    this.peers = peers;
    this.#configId = configId(config);
    this.#log = log;
    log.level = config.server.logLevel;
    this.alarms = new Alarms(now, log);
    this.#metrics = new ServerMetrics(this);
    const plan = state?.plan ?? null;
    this.#salt = state?.salt ?? randomBytes(16).toString('hex');
    this.recorders = new Recorders(options.recorder, () => signals.known(now()));
    const signals = new RecordedSignals(config, ratesOf(state), now(), (signal) =>
      this.recorders.record(signal),
    );
    this.signals = signals;
    this.#hasGoneOn = left !== undefined;
    if (left !== undefined) {
      signals.goOn(left.saved, now());
      // Those of a peer may be newer.
      if (state?.operations !== undefined) signals.takeOrders(state.operations, now());
    } else if (state?.operations !== undefined) signals.resume(state.operations, now());
    this.#view = this.signals.evaluate(now());
    this.#firstPlan = new FirstPlan(live, signals, this.startedAtMs);
    this.#intake = new Intake({
      signals,
      log,
      onNews: () => this.#tickSoon(),
      onLoadReport: (frontendId, nodeId, report) =>
        peers.tell('load-report', frontendId, nodeId, () => encodeUsageReport(report)),
      heardMs: left?.atMs ?? now(),
      now,
    });
    this.board = new SnapshotBoard(now, state?.snapshotVersion);
    const sockets = envoySockets({
      live,
      intake: this.#intake,
      board: this.board,
      peers,
      onNack: (nack) => this.#metrics.countNack(nack),
      onSync: (status) => this.#metrics.countSync(status),
      log,
    });
    this.#xds = sockets.xds;
    this.#sync = sockets.sync;
    this.#peerIntake = new PeerIntake({
      peers,
      intake: this.#intake,
      signals,
      sync: this.#sync,
      isFrontend: (id) => live.hasFrontend(id),
      log,
      onOrders: () => {
        this.#tickSoon();
        void this.#save();
      },
      now,
    });
    this.#following = new Following({
      peers,
      log,
      state: () => this.#view.state,
      ownRelief: () => this.#cycle.relief,
      inForce: () => this.#published && { planId: this.#planning.plan?.id, salt: this.#salt },
      onPlan: (followed, from) => this.#takeFollowed(followed, from),
      onRelief: () => this.#publisher.refresh(),
    });
    this.#publisher = new Publisher({
      xds: this.#xds,
      board: this.board,
      salt: () => this.#salt,
      wasmModule,
      envoy: (frontendId) => envoyOptions(this.config, frontendId),
      steered: () => this.config.steered,
      relief: () => this.relief,
      edsIntervalMs: () => this.config.server.edsIntervalSeconds * 1_000,
      now,
    });
    this.engineWatch = new EngineWatch(
      (engineId, address, result) => {
        this.#firstPlan.noteProbe(address, now());
        return this.#intake.acceptProbe(engineId, address, result);
      },
      (engineId, address, generated) => this.signals.acceptPage(engineId, address, generated, now()),
    );
    this.#keeper = new StateKeeper({
      store,
      file: config.server.stateFile,
      alarms: this.alarms,
      state: () => this.#state(),
      now,
    });
    const input = (previous: Plan | null) => planInput(this.config, this.#view, previous, now);
    this.#planning = new Planning(
      {
        optimizer,
        schedule: this.#cycle.schedule,
        recorders: this.recorders,
        alarms: this.alarms,
        log,
        input,
        generation: () => live.generation,
        isWanted: () => this.isPlanning,
        onSolved: (seconds, failure) => this.#metrics.observeSolve(seconds, failure?.code),
        onPlan: (made) => {
          // The same plan still has to be published for another fleet.
          if (made !== this.#published?.plan) this.#publish(made);
        },
        now,
      },
      plan,
    );
    this.questions = new Questions({
      solver: options.questionSolver,
      history: { since: (sequence) => this.#ownPlans().history.since(sequence) },
      input: () => {
        if (this.plan === null) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
        return optimizerInput(input(this.plan));
      },
    });
    log.info({ configFile }, 'configuration loaded');
  }

  /** What is known of replicas that are looked for, by engine id. */
  get discovered(): ReadonlyMap<string, Discovered> {
    return this.#live.discovered;
  }

  get config(): Config {
    return this.#live.current;
  }

  /** The plan in force, once it is published. */
  get plan(): Plan | null {
    return this.#isPublished ? this.#planning.plan : null;
  }

  /** Of the last good solve; undefined before the first, and while another control server makes the plans. */
  get solution(): Solution | undefined {
    return this.isPlanning ? this.#planning.solved?.solution : undefined;
  }

  /** How the fleet looked at the last tick. */
  get view(): SignalsView {
    return this.#view;
  }

  /** How engines are relieved for now. */
  get relief(): Relief {
    return this.#following.relief;
  }

  /** Whether this server makes the plans that it publishes. */
  get isPlanning(): boolean {
    return this.#following.isPlanning;
  }

  /** Why the plan of the leading control server cannot be published here; null when it is. */
  get unfitReason(): string | null {
    return this.#following.unfitReason;
  }

  /** Why a weight is what it is, by the last good solve. */
  explain(query: ExplainQuery): Explained {
    const { solved, plan, failure } = this.#ownPlans();
    if (solved === undefined) throw new WardropError('WARDROP_NOT_READY', 'nothing is solved yet');
    const { signals } = this;
    return explainSolved(query, { ...solved, plan, failure, signals, capacities: this.#view.capacities });
  }

  /**
   * Does what an operator asks for; it is logged, listed and kept over restarts.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(request: OperatorRequest): void {
    this.signals.act(request, now());
    this.#log.info({ ...request }, 'operator action');
    this.#tickSoon();
    void this.#save();
  }

  /** The other control servers. */
  peerViews(nowMs = now()): readonly PeerView[] {
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
    return this.#live.reload(reason);
  }

  /** Frees all sockets and timers; Envoys go on with what they have. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    const { heardMs } = this.#intake;
    clearInterval(this.#ticker);
    this.#planning.stop();
    await this.#live.stop();
    this.#publisher.stop();
    await this.peers.stop();
    await Promise.all([this.engineWatch.stop(), this.#sync.stop(), this.#xds.stop(), this.#admin?.stop()]);
    if (this.#isPublished) await this.#save();
    if (this.#isPublished || this.#hasGoneOn) await this.#leaveSignals(heardMs);
  }

  /** Without them the next start measures anew. */
  async #leaveSignals(atMs: number): Promise<void> {
    const file = new SignalsFile(this.config.server.stateFile);
    await file.leave(this.config, { atMs, saved: this.signals.save() }).catch((error) => {
      this.#log.warn({ err: error }, 'what was measured is not kept for the next start');
    });
  }

  async #open(): Promise<void> {
    const { adminListen } = this.config.server;
    this.#admin = await startAdmin({
      listen: adminListen,
      server: this,
      metrics: this.#metrics,
      log: this.#log,
    });
    this.#following.begin(now());
    this.peers.start({
      own: () => ({
        configId: this.#configId,
        planSequence: this.plan?.sequence ?? null,
        orders: this.signals.orders,
      }),
      onHeardAgain: () => this.#peerIntake.noteHoldUp(),
      onReport: (report) => this.#peerIntake.acceptReport(report),
      onOrders: (orders) => this.#peerIntake.acceptOrders(orders),
      onChange: () => this.#tickSoon(),
    });
    await this.#xds.start();
    await this.#sync.start();
    this.#goOn();
    this.engineWatch.watch(this.config.fleet, this.config.upstreams);
    this.#live.follow({
      alarms: this.alarms,
      log: this.#log,
      onRead: (isGood) => this.#metrics.countReload(isGood),
      // One change of the fleet at a time, so that no endpoint is removed while a snapshot may still name it.
      idle: () => this.#publisher.idle(),
      onChange: () => this.#takeConfig(),
    });
    this.#ticker = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Publishes the saved plan when it can serve the fleet of now. */
  #goOn(): void {
    const { plan } = this.#planning;
    if (plan === null || this.#firstPlan.isUndiscovered(now())) return;
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
    const nowMs = now();
    if (!this.#intake.isSettled(nowMs)) return;
    const seen = { config: this.config, signals: this.signals, loads: this.loadSources };
    this.#cycle.passLoads(seen, nowMs);
    this.#view = this.signals.evaluate(nowMs);
    this.#peerIntake.look(nowMs);
    this.#following.look(nowMs);
    this.#raiseAlarms(nowMs);
    const isOther = this.#cycle.relieve(seen, this.#view, this.#envoys(nowMs), nowMs);
    if (isOther && !this.#following.isFollowing) this.#publisher.refresh();
    if (this.#isPublished && this.#keeper.isDue()) void this.#save();
    if (this.#published !== undefined) this.#keepPublished(this.#published);
    if (this.isPlanning && !this.#planning.isBusy && this.#isSolveDue(nowMs)) {
      void this.#planning.run().finally(() => this.#tickSoon());
    }
  }

  /** Publishes the same plan again when engines look different, and tells peers how they do. */
  #keepPublished({ plan, engines }: Publication): void {
    if (!isDeepStrictEqual(engines, this.#following.engines)) this.#publish(plan);
    if (this.peers.isAlone) return;
    this.peers.board.setLive(
      { engines: this.#published!.engines, relief: this.relief },
      this.#xds.configuredNodes(),
    );
  }

  /** Publishes a plan of another control server. */
  #takeFollowed({ plan, salt }: FollowedPlan, from: string): void {
    if (!this.#isPublished && this.#firstPlan.isUndiscovered(now())) return;
    if (this.#planning.plan?.id !== plan.id) {
      const { id: planId, sequence } = plan;
      this.#log.info({ planId, sequence, from }, 'a plan of another control server is in force');
    }
    this.#planning.adopt(plan);
    this.#salt = salt;
    this.#publish(plan);
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
  #ownPlans(): Planning {
    if (this.isPlanning) return this.#planning;
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
    if (!this.#isPublished && this.#firstPlan.isUndiscovered(nowMs)) return false;
    // Also with a saved plan in force: who has died since, or was dead, would get conversations for a moment.
    const isWaiting = !this.#cycle.schedule.hasBegun && this.#firstPlan.isUnprobed(nowMs);
    return !isWaiting && this.#cycle.isDue(this.#live.generation, this.#view, this.#isPublished, nowMs);
  }

  #publish(plan: Plan): void {
    const { configuredFleet: fleet, state } = this.#view;
    const { engines } = this.#following;
    this.#published = { plan, fleet, networkSeconds: state.fleet.networkSeconds, engines };
    this.#isPublished = true;
    this.#publisher.publish(this.#published);
    void this.#save();
  }

  async #save(): Promise<void> {
    if (!this.peers.isAlone) this.peers.board.setState(encodeState(this.#state()));
    await this.#keeper.save();
  }

  /** What a restart goes on with. */
  #state(): ServerState {
    return {
      plan: this.#planning.plan,
      snapshotVersion: this.board.lastVersion,
      salt: this.#salt,
      operations: this.signals.operations,
      discovered: [...this.discovered].flatMap(([id, { addresses }]) =>
        addresses === undefined ? [] : [[id, addresses] as const],
      ),
    };
  }

  /** Goes by another configuration from now on. */
  #takeConfig(): void {
    const { server, fleet, upstreams } = this.config;
    this.#configId = configId(this.config);
    this.#log.level = server.logLevel;
    this.signals.reconfigure(this.config, now());
    this.engineWatch.watch(fleet, upstreams);
    this.#published = undefined;
    // The kill switch does not wait for a plan.
    this.#publisher.refresh();
    this.#tickSoon();
  }

  #raiseAlarms(nowMs: number): void {
    const seen = {
      fleet: this.config.fleet,
      view: this.#view,
      signals: this.signals,
      readings: this.engineWatch.readings,
      discoveryProblems: this.#live.discoveryProblems,
      plan: this.plan,
    };
    raiseFleetAlarms(this.alarms, seen, nowMs);
    if (nowMs - this.#slowAlarmsAtMs < SLOW_ALARMS_INTERVAL_MS) return;
    this.#slowAlarmsAtMs = nowMs;
    const envoys = {
      nodes: this.#xds.nodes(),
      holders: [...this.board.holders(), ...this.peers.envoys(nowMs)],
      unread: new Map([...this.#sync.unreadNodes(nowMs), ...this.#peerIntake.unread]),
    };
    raiseSlowAlarms(this.alarms, this.#view, envoys, nowMs);
    raisePeerAlarms(this.alarms, this.peerViews(nowMs), this.unfitReason);
  }
}
