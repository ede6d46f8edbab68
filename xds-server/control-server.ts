import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import { encodeUsageReport } from '../wire/usage-report-writer.js';
import { type AdminServer, startAdmin } from './admin/admin-server.js';
import { ServerMetrics } from './admin/metrics/server-metrics.js';
import type { ShownServer } from './admin/shown-server.js';
import type { Config, TlsSettings } from './config/config.js';
import { configId } from './config/config-id.js';
import { AlarmWatch } from './control/alarms/alarm-watch.js';
import { Alarms } from './control/alarms/alarms.js';
import { Faults } from './control/alarms/faults.js';
import { ControlCycle, planInput, type Seen } from './control/cycle.js';
import { type EnvoySockets, envoySockets } from './control/intake/envoy-sockets.js';
import { Intake } from './control/intake/intake.js';
import { PeerIntake } from './control/intake/peer-intake.js';
import type { LiveConfig } from './control/live-config/live-config.js';
import { FirstPlan } from './control/planning/first-plan.js';
import { Planning } from './control/planning/planning.js';
import { envoyOptions } from './control/publishing/envoy-options.js';
import { PlanInForce } from './control/publishing/plan-in-force.js';
import { Publisher } from './control/publishing/publisher.js';
import type { FilterRun } from './control/questions/filter-run.js';
import { Questions } from './control/questions/questions.js';
import { type Recorder, Recorders } from './control/recording/recorders.js';
import { sharingEnvoys } from './control/relief/sharing-envoys.js';
import { SignalsFile } from './control/restart/signals-file.js';
import { type StartingPoint, startingPoint } from './control/restart/starting-point.js';
import { startingSignals } from './control/restart/starting-signals.js';
import { StateKeeper } from './control/restart/state-keeper.js';
import { Ticker } from './control/ticker.js';
import { WardropError } from './errors.js';
import type { Solution } from './optimizer/index.js';
import { Following } from './peers/following.js';
import type { Peers, PeerView } from './peers/peers.js';
import { optimizerInput, type PlanInput, type PlanSolver, type Solver } from './plan/make-plan.js';
import type { Plan } from './plan/plan.js';
import type { Relief } from './plan/protection/relief.js';
import type { ServerState } from './plan/state-file/server-state.js';
import type { StateFile } from './plan/state-file/state-file.js';
import type { Discovered } from './signals/discovery/discovery.js';
import type { Lookup } from './signals/discovery/lookup.js';
import type { OperatorRequest } from './signals/operator-orders.js';
import type { LoadSources } from './signals/pages/engine-load.js';
import { EngineWatch } from './signals/pages/engine-watch.js';
import type { Signals, SignalsView } from './signals/signals.js';
import { now } from './steady-clock.js';
import { SnapshotBoard } from './sync/snapshot-board.js';
import type { NodeView, ResourceStatus } from './xds/index.js';

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

/**
 * Composition root: one control server, from its configuration file to its sockets. The parts are made in the order in which data
 * passes through them; what one tells another that comes later goes through a function.
 */
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
  readonly #log: Logger;
  readonly #faults: Faults;
  readonly #metrics: ServerMetrics;
  readonly #live: LiveConfig;
  readonly #ticker = new Ticker(
    () => this.#tick(),
    () => performance.now(),
  );
  readonly #cycle = new ControlCycle();
  readonly #alarmWatch: AlarmWatch;
  readonly #intake: Intake;
  readonly #envoys: EnvoySockets;
  readonly #peerIntake: PeerIntake;
  readonly #firstPlan: FirstPlan;
  readonly #planning: Planning;
  readonly #following: Following;
  readonly #publisher: Publisher;
  readonly #inForce: PlanInForce;
  readonly #keeper: StateKeeper;
  /** What signals knew was left by a control server before. */
  readonly #hasGoneOn: boolean;
  #admin: AdminServer | undefined;
  #configId: string;
  #tls: TlsSettings | undefined;
  #view: SignalsView;
  #stopped = false;

  /**
   * Loads the configuration and the state file, opens all sockets and starts to plan.
   *
   * @throws {ConfigError} for a configuration with problems
   */
  static async start(options: ControlServerOptions): Promise<ControlServer> {
    const start = await startingPoint(options.configFile, options.lookup);
    const server = new ControlServer(options, start);
    if (start.problem !== null) server.alarms.raise('state-file', start.problem.message);
    for (const warning of server.config.warnings) options.log.warn({ ...warning }, warning.message);
    try {
      await server.#open();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  private constructor(options: ControlServerOptions, start: StartingPoint) {
    const { log, configFile, optimizer, questionSolver, wasmModule, runFilter, recorder } = options;
    const { live, stateFile, peers, state, left } = start;
    const config = live.current;
    log.level = config.server.logLevel;
    this.#log = log;
    this.#live = live;
    this.#configId = configId(config);
    this.#tls = config.server.tls;
    this.peers = peers;
    this.runFilter = runFilter;
    this.alarms = new Alarms(now, log);
    this.#faults = new Faults(this.alarms, log, now);
    this.#metrics = new ServerMetrics(this);
    this.#alarmWatch = new AlarmWatch(this.alarms);

    this.recorders = new Recorders(recorder, () => signals.known(now()));
    const signals = startingSignals(config, start, now(), (signal) => this.recorders.record(signal));
    this.signals = signals;
    this.#hasGoneOn = left !== undefined;
    this.#view = signals.evaluate(now());

    this.board = new SnapshotBoard(now, state?.snapshotVersion);
    this.#firstPlan = new FirstPlan(live, signals, this.startedAtMs);
    this.#intake = this.#createIntake(left?.atMs ?? now());
    this.engineWatch = this.#createEngineWatch();
    this.#envoys = this.#createEnvoySockets(state?.plan ?? null);
    this.#peerIntake = this.#createPeerIntake();

    this.#planning = this.#createPlanning(optimizer, state?.plan ?? null);
    this.#following = this.#createFollowing();
    this.#publisher = this.#createPublisher(wasmModule);
    this.#inForce = this.#createPlanInForce(state?.salt ?? randomBytes(16).toString('hex'));

    this.#keeper = this.#createStateKeeper(stateFile);
    this.questions = this.#createQuestions(questionSolver);
    log.info({ configFile }, 'configuration loaded');
  }

  #createIntake(heardMs: number): Intake {
    const { signals, peers } = this;
    return new Intake({
      signals,
      log: this.#log,
      onNews: () => this.#ticker.soon(),
      onLoadReport: (frontendId, nodeId, report) =>
        peers.tell('load-report', frontendId, nodeId, () => encodeUsageReport(report)),
      heardMs,
      now,
    });
  }

  #createEngineWatch(): EngineWatch {
    return new EngineWatch(
      (engineId, address, result) => {
        this.#firstPlan.noteProbe(address, now());
        return this.#intake.acceptProbe(engineId, address, result);
      },
      (engineId, address, generated) => this.signals.acceptPage(engineId, address, generated, now()),
      (error) => this.#faults.note('probes and pages', error),
    );
  }

  #createEnvoySockets(before: Plan | null): EnvoySockets {
    return envoySockets({
      live: this.#live,
      intake: this.#intake,
      board: this.board,
      peers: this.peers,
      poolsBefore: (before?.rows ?? []).map(({ poolId }) => poolId),
      onNack: (nack) => this.#metrics.countNack(nack),
      onSync: (status) => this.#metrics.countSync(status),
      log: this.#log,
    });
  }

  #createPeerIntake(): PeerIntake {
    return new PeerIntake({
      peers: this.peers,
      intake: this.#intake,
      signals: this.signals,
      sync: this.#envoys.sync,
      isFrontend: (id) => this.#live.hasFrontend(id),
      log: this.#log,
      onOrders: () => this.#noteOrders(),
      now,
    });
  }

  #createPlanning(optimizer: PlanSolver, last: Plan | null): Planning {
    return new Planning(
      {
        optimizer,
        schedule: this.#cycle.schedule,
        recorders: this.recorders,
        alarms: this.alarms,
        log: this.#log,
        input: (previous) => this.#planInput(previous),
        generation: () => this.#live.generation,
        isWanted: () => this.isPlanning,
        onSolved: (seconds, failure) => this.#metrics.observeSolve(seconds, failure?.code),
        onPlan: (plan) => this.#inForce.takeMade(plan),
        now,
      },
      last,
    );
  }

  #createFollowing(): Following {
    return new Following({
      peers: this.peers,
      log: this.#log,
      state: () => this.#view.state,
      ownRelief: () => this.#cycle.relief,
      inForce: () =>
        this.#inForce.publication && { planId: this.#planning.plan?.id, salt: this.#inForce.salt },
      onPlan: (followed, from) => this.#inForce.takeFollowed(followed, from),
      onRelief: () => this.#publisher.refresh(),
    });
  }

  #createPublisher(wasmModule: Uint8Array): Publisher {
    return new Publisher({
      xds: this.#envoys.xds,
      board: this.board,
      salt: () => this.#inForce.salt,
      wasmModule,
      envoy: (frontendId) => envoyOptions(this.config, frontendId),
      steered: () => this.config.steered,
      relief: () => this.relief,
      edsIntervalMs: () => this.config.server.edsIntervalSeconds * 1_000,
      isNamedElsewhere: (poolId) => this.peers.namesPool(poolId, now()),
      onFault: (error) => this.#faults.note('publishing', error),
      now,
    });
  }

  #createPlanInForce(salt: string): PlanInForce {
    return new PlanInForce({
      planning: this.#planning,
      following: this.#following,
      publisher: this.#publisher,
      firstPlan: this.#firstPlan,
      view: () => this.#view,
      salt,
      onPublished: () => void this.#keeper.save(),
      log: this.#log,
      now,
    });
  }

  #createStateKeeper(file: StateFile): StateKeeper {
    return new StateKeeper({
      file,
      peers: this.peers,
      alarms: this.alarms,
      state: () => this.#state(),
      now,
    });
  }

  #createQuestions(solver: Solver): Questions {
    return new Questions({
      solver,
      planning: this.#planning,
      following: this.#following,
      peers: this.peers,
      signals: this.signals,
      view: () => this.#view,
      input: () => {
        const { plan } = this;
        if (plan === null) throw new WardropError('WARDROP_NOT_READY', 'no plan is published yet');
        return optimizerInput(this.#planInput(plan));
      },
    });
  }

  get config(): Config {
    return this.#live.current;
  }

  /** What is known of replicas that are looked for, by engine id. */
  get discovered(): ReadonlyMap<string, Discovered> {
    return this.#live.discovered;
  }

  /** The plan in force, once it is published. */
  get plan(): Plan | null {
    return this.#inForce.plan;
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

  /** Where engines say how much they have to do. */
  get loadSources(): LoadSources {
    return {
      pages: this.engineWatch.readings,
      responses: (address) => this.signals.totals.load(address),
    };
  }

  /** Whether this server makes the plans that it publishes. */
  get isPlanning(): boolean {
    return this.#following.isPlanning;
  }

  /** Why the plan of the leading control server cannot be published here; null when it is. */
  get unfitReason(): string | null {
    return this.#following.unfitReason;
  }

  /** The other control servers. */
  peerViews(nowMs = now()): readonly PeerView[] {
    return this.peers.views(nowMs, this.#configId);
  }

  nodes(): NodeView[] {
    return this.#envoys.xds.nodes();
  }

  /** Every resource that a connected Envoy asked for or was sent, by type URL. */
  resourcesOf(nodeId: string): Record<string, readonly ResourceStatus[]> {
    return this.#envoys.xds.resourcesOf(nodeId);
  }

  /**
   * Does what an operator asks for; it is logged, listed and kept over restarts.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(request: OperatorRequest): void {
    this.signals.act(request, now());
    this.#log.info({ ...request }, 'operator action');
    this.#noteOrders();
  }

  /** Reads the configuration again; true when it is in force, false when it has problems and nothing changed. */
  reload(reason: string): Promise<boolean> {
    return this.#live.reload(reason);
  }

  /** Frees all sockets and timers; Envoys go on with what they have. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#ticker.stop();
    this.#planning.stop();
    await this.#live.stop();
    this.#publisher.stop();
    await this.peers.stop();
    await Promise.all([this.engineWatch.stop(), this.#envoys.stop(), this.#admin?.stop()]);
    const { isPublished } = this.#inForce;
    if (isPublished) await this.#keeper.save();
    if (isPublished || this.#hasGoneOn) await this.#leaveSignals(this.#intake.heardMs);
  }

  /** Without them the next start measures anew. */
  async #leaveSignals(atMs: number): Promise<void> {
    const file = new SignalsFile(this.config.server.stateFile);
    await file.leave(this.config, { atMs, saved: this.signals.save() }).catch((error) => {
      this.#log.warn({ err: error }, 'what was measured is not kept for the next start');
    });
  }

  async #open(): Promise<void> {
    this.#admin = await startAdmin({
      listen: this.config.server.adminListen,
      server: this,
      metrics: this.#metrics,
      log: this.#log,
    });
    this.#following.begin(now());
    this.#startPeers();
    await this.#envoys.xds.start();
    await this.#envoys.sync.start();
    this.#inForce.takeSaved();
    this.engineWatch.watch(this.config.fleet, this.config.upstreams);
    this.#live.follow({
      alarms: this.alarms,
      faults: this.#faults,
      log: this.#log,
      onRead: (isGood) => this.#metrics.countReload(isGood),
      // One change of the fleet at a time, so that no endpoint is removed while a snapshot may still name it.
      idle: () => this.#publisher.idle(),
      onChange: () => this.#takeConfig(),
    });
    this.#ticker.start();
  }

  #startPeers(): void {
    this.peers.start({
      own: () => ({
        configId: this.#configId,
        planSequence: this.plan?.sequence ?? null,
        orders: this.signals.orders,
      }),
      onHeardAgain: () => this.#peerIntake.noteHoldUp(),
      onReport: (report) => this.#peerIntake.acceptReport(report),
      onOrders: (orders) => this.#peerIntake.acceptOrders(orders),
      onChange: () => this.#ticker.soon(),
    });
  }

  /** From what was heard to what is to be done about it; a part that fails leaves all else as it was. */
  #tick(): void {
    const nowMs = now();
    if (!this.#intake.isSettled(nowMs)) return;
    const attempt = (part: string, run: () => void) => this.#faults.attempt(part, run);
    attempt('signals', () => this.#evaluate(nowMs));
    attempt('peers', () => this.#lookAtPeers(nowMs));
    attempt('alarms', () => this.#raiseAlarms(nowMs));
    attempt('relief', () => this.#relieve(nowMs));
    attempt('state file', () => {
      if (this.#inForce.isPublished) this.#keeper.look();
    });
    attempt('publishing', () => this.#publishRest());
    attempt('peers', () => this.#tellPeers());
    attempt('planning', () => this.#planWhenDue(nowMs));
    this.#faults.look();
  }

  get #seen(): Seen {
    return { config: this.config, signals: this.signals, loads: this.loadSources };
  }

  #evaluate(nowMs: number): void {
    this.#cycle.passLoads(this.#seen, nowMs);
    this.#view = this.signals.evaluate(nowMs);
  }

  #lookAtPeers(nowMs: number): void {
    this.#peerIntake.look(nowMs);
    this.#following.look(nowMs);
    if (!this.isPlanning) this.#planning.rest();
  }

  #relieve(nowMs: number): void {
    const envoys = sharingEnvoys(this.board, this.peers, nowMs);
    const isOther = this.#cycle.relieve(this.#seen, this.#view, envoys, nowMs);
    if (isOther && !this.#following.isFollowing) this.#publisher.refresh();
  }

  /** What is to be told to Envoys without another plan. */
  #publishRest(): void {
    this.#inForce.refresh();
    this.#publisher.letGo();
    this.#envoys.xds.goOn();
  }

  #planWhenDue(nowMs: number): void {
    if (!this.isPlanning || this.#planning.isBusy || !this.#isSolveDue(nowMs)) return;
    void this.#planning.run().then(
      () => this.#ticker.soon(),
      (error) => this.#faults.note('planning', error),
    );
  }

  #raiseAlarms(nowMs: number): void {
    this.#alarmWatch.look(
      {
        fleet: this.config.fleet,
        view: this.#view,
        signals: this.signals,
        certificates: this.config.certificates,
        readings: this.engineWatch.readings,
        discoveryProblems: this.#live.discoveryProblems,
        plan: this.plan,
        envoys: () => ({
          nodes: this.nodes(),
          holders: [...this.board.holders(), ...this.peers.envoys(nowMs)],
          refusals: this.#envoys.xds.refusals(),
          unread: new Map([...this.#envoys.sync.unreadNodes(nowMs), ...this.#peerIntake.unread]),
        }),
        peers: () => this.peerViews(nowMs),
        unfitReason: this.unfitReason,
      },
      nowMs,
    );
  }

  /** How engines look here, and how they are relieved. */
  #tellPeers(): void {
    const { publication } = this.#inForce;
    if (publication === undefined || this.peers.isAlone) return;
    const { engines } = publication;
    const { xds } = this.#envoys;
    this.peers.board.setLive({
      live: { engines, relief: this.relief },
      configured: xds.configuredNodes(),
      pools: { connected: xds.connectedNodes(), ...this.#publisher.pools },
    });
  }

  #isSolveDue(nowMs: number): boolean {
    const { isPublished } = this.#inForce;
    if (!isPublished && this.#firstPlan.isUndiscovered(nowMs)) return false;
    // Also with a saved plan in force: who has died since, or was dead, would get conversations for a moment.
    const isWaiting = !this.#cycle.schedule.hasBegun && this.#firstPlan.isUnprobed(nowMs);
    return !isWaiting && this.#cycle.isDue(this.#live.generation, this.#view, isPublished, nowMs);
  }

  #planInput(previous: Plan | null): PlanInput {
    return planInput(this.config, this.#view, previous);
  }

  /** What a restart goes on with. */
  #state(): ServerState {
    return {
      plan: this.#planning.plan,
      snapshotVersion: this.board.lastVersion,
      salt: this.#inForce.salt,
      operations: this.signals.operations,
      discovered: [...this.discovered].flatMap(([id, { addresses }]) =>
        addresses === undefined ? [] : [[id, addresses] as const],
      ),
    };
  }

  /** Shows these certificates from now on, if they are others. */
  #renew(tls: TlsSettings | undefined): void {
    if (tls === undefined || tls === this.#tls) return;
    this.#tls = tls;
    this.#envoys.renew(tls);
    this.peers.renew(tls);
    this.#log.info('other certificates are shown from now on');
  }

  /** An operator ordered something, here or at a peer. */
  #noteOrders(): void {
    this.#ticker.soon();
    void this.#keeper.save();
  }

  /** Goes by another configuration from now on. */
  #takeConfig(): void {
    const { server, fleet, upstreams } = this.config;
    this.#configId = configId(this.config);
    this.#log.level = server.logLevel;
    this.#renew(server.tls);
    this.signals.reconfigure(this.config, now());
    this.engineWatch.watch(fleet, upstreams);
    this.#inForce.outdate();
    // The kill switch does not wait for a plan.
    this.#publisher.refresh();
    this.#ticker.soon();
  }
}
