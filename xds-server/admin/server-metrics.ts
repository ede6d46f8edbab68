import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { SignalName } from '../fleet/fleet.js';
import { effectiveCapacity } from '../fleet/fleet-state.js';
import { trustedValue } from '../signals/pages/replica-reading.js';
import { type Nack, shortType } from '../xds/index.js';
import type { ShownServer } from './shown-server.js';

const SOLVE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/**
 * The control server's metrics. Events are counted as they happen; everything else is read from the server when the
 * page is asked for. All labels are ids of the configuration or members of short fixed lists, so that no caller can
 * add series.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #solveSeconds: Histogram;
  readonly #solves: Counter<'result'>;
  readonly #syncCalls: Counter<'status'>;
  readonly #nacks: Counter<'type'>;
  readonly #reloads: Counter<'result'>;

  constructor(server: ShownServer) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#solveSeconds = new Histogram({
      name: 'wardrop_solve_seconds',
      help: 'Time from the start of a solve to the checked plan.',
      buckets: SOLVE_BUCKETS,
      registers,
    });
    this.#solves = new Counter({
      name: 'wardrop_solves_total',
      help: 'Solves by result: ok or an error code.',
      labelNames: ['result'],
      registers,
    });
    this.#syncCalls = new Counter({
      name: 'wardrop_sync_calls_total',
      help: 'Calls of filters by HTTP status.',
      labelNames: ['status'],
      registers,
    });
    this.#nacks = new Counter({
      name: 'wardrop_nacks_total',
      help: 'Rejections by Envoys by resource type.',
      labelNames: ['type'],
      registers,
    });
    this.#reloads = new Counter({
      name: 'wardrop_config_reloads_total',
      help: 'Reloads of the configuration by result.',
      labelNames: ['result'],
      registers,
    });
    registerPlan(server, registers);
    registerFleet(server, registers);
    registerUsage(server, registers);
    registerClients(server, registers);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The page in Prometheus' text format. */
  page(): Promise<string> {
    return this.#registry.metrics();
  }

  observeSolve(seconds: number, failure: string | undefined): void {
    this.#solveSeconds.observe(seconds);
    this.#solves.inc({ result: failure ?? 'ok' });
  }

  countSync(status: number): void {
    this.#syncCalls.inc({ status: String(status) });
  }

  countNack({ typeUrl }: Nack): void {
    this.#nacks.inc({ type: shortType(typeUrl) });
  }

  countReload(isGood: boolean): void {
    this.#reloads.inc({ result: isGood ? 'ok' : 'error' });
  }
}

type Registers = Registry[];

/** A gauge whose samples are read anew for every page. */
function gauge<L extends string>(
  registers: Registers,
  name: string,
  help: string,
  labelNames: readonly L[],
  read: () => Iterable<readonly [Readonly<Record<L, string>>, number]>,
): void {
  new Gauge({
    name,
    help,
    labelNames,
    registers,
    collect() {
      this.reset();
      for (const [labels, value] of read()) this.set(labels, value);
    },
  });
}

function registerPlan(server: ShownServer, registers: Registers): void {
  const one = (value: number | undefined) => (value === undefined ? [] : [[{}, value] as const]);
  const engines = (value: 'rho' | 'congestionPriceSeconds' | 'scarcityPriceSeconds') => () =>
    (server.plan?.engines ?? []).map((engine) => [{ engine: engine.engineId }, engine[value]] as const);
  gauge(registers, 'wardrop_plan_sequence', 'Number of the plan in force.', [], () =>
    one(server.plan?.sequence),
  );
  gauge(registers, 'wardrop_plan_age_seconds', 'Time since the plan in force was made.', [], () =>
    one(server.plan === null ? undefined : (Date.now() - server.plan.createdAtMs) / 1_000),
  );
  gauge(
    registers,
    'wardrop_plan_objective_seconds',
    'User-seconds per second under the plan, moves included.',
    [],
    () => one(server.plan?.objectiveSeconds),
  );
  gauge(
    registers,
    'wardrop_weight',
    'Share of the traffic of a frontend and pool for an engine.',
    ['frontend', 'pool', 'engine'],
    () =>
      (server.plan?.rows ?? []).flatMap((row) =>
        row.weights.map(
          ({ engineId, weight }) =>
            [{ frontend: row.frontendId, pool: row.poolId, engine: engineId }, weight] as const,
        ),
      ),
  );
  gauge(
    registers,
    'wardrop_shed_fraction',
    'Share of requests of a frontend, pool and priority that are refused.',
    ['frontend', 'pool', 'priority'],
    () =>
      (server.plan?.rows ?? []).flatMap((row) =>
        row.shed.map(
          ({ priority, fraction }) =>
            [{ frontend: row.frontendId, pool: row.poolId, priority: String(priority) }, fraction] as const,
        ),
      ),
  );
  gauge(registers, 'wardrop_steered_share', 'Share of keys that filters are to steer.', [], () =>
    one(server.config.steered),
  );
  gauge(
    registers,
    'wardrop_overflow_fraction',
    'Share of the keys of an engine that go elsewhere because it has too much in flight.',
    ['engine'],
    () => [...server.relief.engines].map(([engine, fraction]) => [{ engine }, fraction] as const),
  );
  gauge(
    registers,
    'wardrop_replica_in_flight_limit',
    'Requests in flight that each Envoy may have per ready replica of an engine.',
    ['engine'],
    () => [...server.relief.limits].map(([engine, limit]) => [{ engine }, limit] as const),
  );
  gauge(registers, 'wardrop_engine_rho', 'Planned utilisation of an engine.', ['engine'], engines('rho'));
  gauge(
    registers,
    'wardrop_engine_congestion_price_seconds',
    'User-seconds that one more replica-second of work costs through queueing.',
    ['engine'],
    engines('congestionPriceSeconds'),
  );
  gauge(
    registers,
    'wardrop_engine_scarcity_price_seconds',
    'User-seconds that one more replica-second of capacity would save at the hard limit.',
    ['engine'],
    engines('scarcityPriceSeconds'),
  );
}

function registerFleet(server: ShownServer, registers: Registers): void {
  gauge(
    registers,
    'wardrop_demand_requests_per_second',
    'Demand that plans are made for, by where it comes from.',
    ['frontend', 'pool', 'source'],
    () =>
      server.view.state.demands.map(
        ({ frontendId, poolId, source, requestsPerSecond }) =>
          [{ frontend: frontendId, pool: poolId, source }, requestsPerSecond] as const,
      ),
  );
  gauge(
    registers,
    'wardrop_plans_made_here',
    '1 while this control server makes the plans that it publishes, 0 while it takes those of another.',
    [],
    () => [[{}, server.isPlanning ? 1 : 0]],
  );
  gauge(
    registers,
    'wardrop_peer_age_seconds',
    'Time since another control server answered; absent before it ever did.',
    ['peer'],
    () =>
      server
        .peerViews()
        .flatMap(({ address, ageSeconds }) =>
          ageSeconds === null ? [] : [[{ peer: address }, ageSeconds] as const],
        ),
  );
  gauge(
    registers,
    'wardrop_settled_seconds',
    'Time that demand and fleet count as having held, the least of all pools.',
    [],
    () => [[{}, server.view.state.settledSeconds]],
  );
  gauge(registers, 'wardrop_engine_replicas', 'Replicas by readiness.', ['engine', 'ready'], () =>
    server.view.state.engines.flatMap(({ id, replicas }) => {
      const ready = replicas.filter((replica) => replica.ready).length;
      return [
        [{ engine: id, ready: 'true' }, ready] as const,
        [{ engine: id, ready: 'false' }, replicas.length - ready] as const,
      ];
    }),
  );
  gauge(
    registers,
    'wardrop_engine_effective_capacity',
    'Ready replicas less health, ramp, drain and penalty.',
    ['engine'],
    () =>
      server.view.state.engines.map((engine) => [{ engine: engine.id }, effectiveCapacity(engine)] as const),
  );
  for (const signal of ['running', 'waiting'] as const) {
    gauge(
      registers,
      `wardrop_engine_${signal}_requests`,
      `Requests that the engine itself says are ${signal}; absent while unknown.`,
      ['engine'],
      () => knownValues(server, signal).map(([labels, values]) => [labels, sum(values)] as const),
    );
  }
  gauge(
    registers,
    'wardrop_engine_kv_use',
    'Mean use of the key-value cache over replicas, 0 to 1; absent while unknown.',
    ['engine'],
    () =>
      knownValues(server, 'kvUse').map(([labels, values]) => [labels, sum(values) / values.length] as const),
  );
  gauge(
    registers,
    'wardrop_engine_signal_age_seconds',
    'Age of the oldest reading of a signal among the replicas of an engine; absent while there is none.',
    ['engine', 'signal'],
    () => signalAges(server),
  );
  gauge(registers, 'wardrop_alarms', 'Present alarms by kind.', ['kind'], () => {
    const kinds = new Map<string, number>();
    for (const { id } of server.alarms.list) {
      const kind = id.split(':')[0]!;
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    }
    return [...kinds].map(([kind, count]) => [{ kind }, count] as const);
  });
}

/** Values of a signal, of the replicas where it can be trusted. */
function knownValues(
  server: ShownServer,
  signal: SignalName,
): readonly (readonly [{ engine: string }, readonly number[]])[] {
  const nowMs = Date.now();
  return server.config.fleet.engines.flatMap(({ id, endpoints }) => {
    const values = endpoints
      .map((address) => trustedValue(server.engineWatch.readings.get(address)?.signals.get(signal), nowMs))
      .filter((value) => value !== undefined);
    return values.length === 0 ? [] : [[{ engine: id }, values] as const];
  });
}

function signalAges(server: ShownServer): readonly (readonly [{ engine: string; signal: string }, number])[] {
  const nowMs = Date.now();
  return server.config.fleet.engines.flatMap(({ id, endpoints }) => {
    const oldest = new Map<SignalName, number>();
    for (const address of endpoints) {
      for (const [signal, { atMs }] of server.engineWatch.readings.get(address)?.signals ?? []) {
        oldest.set(signal, Math.min(oldest.get(signal) ?? Number.POSITIVE_INFINITY, atMs));
      }
    }
    return [...oldest]
      .filter(([, atMs]) => atMs > 0)
      .map(([signal, atMs]) => [{ engine: id, signal }, (nowMs - atMs) / 1_000] as const);
  });
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}

/** Counters of usage reports since the server started. */
function registerUsage(server: ShownServer, registers: Registers): void {
  new Counter({
    name: 'wardrop_requests_total',
    help: 'Requests that filters counted, by what became of them.',
    labelNames: ['frontend', 'pool', 'what'],
    registers,
    collect() {
      this.reset();
      for (const total of server.signals.totals.pools) {
        const labels = { frontend: total.frontendId, pool: total.poolId };
        this.inc({ ...labels, what: 'offered' }, total.offered);
        this.inc({ ...labels, what: 'client_retry' }, total.clientRetries);
        this.inc({ ...labels, what: 'shed' }, total.shed);
        this.inc({ ...labels, what: 'unavailable' }, total.unavailable);
        this.inc({ ...labels, what: 'without_key' }, total.withoutKey);
      }
    },
  });
  new Counter({
    name: 'wardrop_engine_requests_total',
    help: 'Requests and attempts that filters counted per engine, by what became of them.',
    labelNames: ['frontend', 'pool', 'engine', 'what'],
    registers,
    collect() {
      this.reset();
      for (const total of server.signals.totals.engines) {
        const labels = { frontend: total.frontendId, pool: total.poolId, engine: total.engineId };
        this.inc({ ...labels, what: 'planned' }, total.planned);
        this.inc({ ...labels, what: 'diverted' }, total.diverted);
        this.inc({ ...labels, what: 'ended' }, total.ended);
        this.inc({ ...labels, what: 'failed_attempt' }, total.failures);
        this.inc({ ...labels, what: 'retried_attempt' }, total.retries);
        this.inc({ ...labels, what: '2xx' }, total.status2xx);
        this.inc({ ...labels, what: '4xx' }, total.status4xx);
        this.inc({ ...labels, what: '5xx' }, total.status5xx);
        this.inc({ ...labels, what: 'no_response' }, total.noResponse);
        this.inc({ ...labels, what: 'stalled' }, total.stalled);
        this.inc({ ...labels, what: 'broken' }, total.broken);
      }
    },
  });
}

function registerClients(server: ShownServer, registers: Registers): void {
  gauge(registers, 'wardrop_snapshot_version', 'Newest snapshot of a frontend.', ['frontend'], () =>
    server.config.fleet.frontends.flatMap(({ id }) => {
      const version = server.board.current(id)?.version;
      return version === undefined ? [] : [[{ frontend: id }, version] as const];
    }),
  );
  gauge(registers, 'wardrop_envoys', 'Envoys connected over xDS.', ['frontend'], () => {
    const nodes = server.nodes();
    return server.config.fleet.frontends.map(
      ({ id }) => [{ frontend: id }, nodes.filter((node) => node.frontendId === id).length] as const,
    );
  });
  gauge(
    registers,
    'wardrop_envoys_behind',
    'Envoys that called lately and do not hold the newest snapshot.',
    ['frontend'],
    () =>
      server.config.fleet.frontends.map(({ id }) => {
        const version = server.board.current(id)?.version;
        const since = Date.now() - 60_000;
        const behind = server.board
          .holders()
          .filter((holder) => holder.frontendId === id && holder.atMs > since && holder.version !== version);
        return [{ frontend: id }, behind.length] as const;
      }),
  );
}
