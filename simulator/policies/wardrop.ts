import { readFileSync } from 'node:fs';
import { encodeDisplaced } from '../../wire/displaced-writer.js';
import { READY_PATH, SYNC_DISPLACED_HEADER } from '../../wire/names.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import type { UsageReport } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import type { Config } from '../../xds-server/config/config.js';
import { driftingProfiles } from '../../xds-server/control/alarms/alarm-rules.js';
import { packageFile } from '../../xds-server/package-file.js';
import { buildSnapshotView } from '../../xds-server/plan/snapshot-view.js';
import { DisplacedBoard } from '../../xds-server/sync/displaced-board.js';
import { Host, type Stream, type Vm } from '../filter-host/host.js';
import { Random } from '../random.js';
import { envoysOf } from '../scenario.js';
import { addressOf, ControlLoop, EPOCH_MS, nodeOf, wallMs } from './control-loop.js';
import type { Decision, Policy, PolicyContext, PolicyFactory, RoutedRequest, Telemetry } from './policy.js';

export interface WardropOptions {
  /** Whether engines that turn slow get less; default: as shipped, or as configured. */
  readonly outlierPenalty?: Config['outlierPenalty'];
  /** Mixed into hashes of keys: another one puts every conversation elsewhere. */
  readonly salt?: string;
}

/**
 * Wardrop as shipped: the compiled filter decides every request in emulated Envoys, one VM in each; their usage reports
 * go through the control server's own signals, optimizer and plan; what comes back is a snapshot.
 */
export function wardrop(options: WardropOptions = {}): PolicyFactory {
  return async (context) => {
    const policy = new Wardrop(context, options);
    await policy.start();
    return policy;
  };
}

interface Observed {
  /** By Envoy. */
  readonly reports: readonly (UsageReport | undefined)[];
  readonly probedUp: readonly boolean[];
}

class Wardrop implements Policy {
  readonly id = 'wardrop';
  readonly #salt: string;
  readonly #context: PolicyContext;
  readonly #loop: ControlLoop;
  /** By Envoy. */
  readonly #vms: readonly Vm[];
  readonly #frontendOf: readonly number[];
  readonly #engineOf: ReadonlyMap<string, number>;
  /** By frontend. */
  #snapshots: Uint8Array[] = [];
  /** By frontend and pool. */
  #weights: (readonly number[])[][] = [];
  readonly #displaced: DisplacedBoard;
  #nowMs = EPOCH_MS;
  #version = 0;
  #installedAt = -1;

  constructor(context: PolicyContext, { salt = 'simulation', ...options }: WardropOptions) {
    this.#salt = salt;
    this.#context = context;
    this.#loop = new ControlLoop(context.scenario, options);
    this.#displaced = new DisplacedBoard(() => this.#nowMs);
    const module = new WebAssembly.Module(readFileSync(packageFile('dist', 'filter', 'wardrop.wasm')));
    const { scenario } = context;
    this.#frontendOf = envoysOf(scenario);
    this.#vms = this.#frontendOf.map((frontend, envoy) => {
      const random = new Random(context.seed, nodeOf(envoy));
      const host = new Host(module, (bytes) => bytes.set(bytes.map(() => random.bits())));
      host.nowMs = EPOCH_MS;
      host.nodeId = nodeOf(envoy);
      const frontendId = scenario.frontends[frontend]!.id;
      return host.startVm({ frontendId, syncPeriodMs: 250, readBodies: true, placement: true });
    });
    this.#engineOf = new Map(scenario.engines.map((_, index) => [addressOf(scenario, index), index]));
  }

  /** The first plan is made of what the operator expects. */
  async start(): Promise<void> {
    await this.#loop.step(EPOCH_MS);
    this.#issue(0);
    for (const vm of this.#vms) vm.tick();
    this.#install();
    for (const vm of this.#vms) {
      const { reply } = vm.request({ ':method': 'GET', ':path': READY_PATH }, { ended: true });
      if (reply?.status !== 200) throw new Error(`the filter refuses its snapshot: ${vm.host.logs.at(-1)}`);
    }
  }

  decide(request: RoutedRequest, now: number): Decision {
    const vm = this.#vmAt(request.envoy, now);
    const { id, requestClass } = request.conversation;
    const { headers: signs } = this.#context.scenario.classes[requestClass]!;
    const headers: Record<string, string> = { ...signs, 'x-session-id': id };
    if (request.clientRetries > 0) headers['x-stainless-retry-count'] = `${request.clientRetries}`;
    const stream = vm.request(headers).send(request.turn.index > 0 ? LATER_BODY : FIRST_BODY, true);
    request.tag = stream;
    const { reply } = stream;
    if (reply === undefined) {
      return stream.endpoints.slice(0, stream.retries + 1).map((address) => this.#engineOf.get(address)!);
    }
    stream.end();
    const header = (name: string) => reply.headers.find(([other]) => other === name)?.[1];
    return {
      refused: true,
      retryAfterSeconds: Number(header('retry-after-ms') ?? 1000 * Number(header('retry-after') ?? 1)) / 1000,
      shouldRetry: header('x-should-retry') !== 'false',
    };
  }

  answered(request: RoutedRequest, _engine: number, now: number, attempts: number): void {
    this.#vmAt(request.envoy, now);
    const { streamed } = request.turn;
    const headers: [string, string][] = [
      ['content-type', streamed ? 'text/event-stream' : 'application/json'],
    ];
    const stream = (request.tag as Stream).respond(200, { attempts, headers });
    if (streamed) stream.responseBody('data: {"choices":[]}\n\n');
    else stream.responseBody(`{"choices":[],${usage(request)}}`, true);
  }

  ended(
    request: RoutedRequest,
    _engine: number,
    now: number,
    outcome: 'answered' | 'failed' | 'timeout',
  ): void {
    const vm = this.#vmAt(request.envoy, now);
    const stream = request.tag as Stream;
    // Envoy answers for an engine that it cannot reach; a client that leaves has seen nothing.
    if (outcome === 'failed' && stream.responseHeaders.length === 0) {
      stream.respond(503, { details: 'upstream_reset_before_response_started{connection_failure}' });
    }
    if (outcome === 'answered' && request.turn.streamed) {
      stream.responseBody(`data: {"choices":[],${usage(request)}}\n\ndata: [DONE]\n\n`, true);
    }
    stream.end();
    vm.host.logs.length = 0;
  }

  tick(now: number): void {
    this.#vms.forEach((_, envoy) => {
      this.#vmAt(envoy, now).tick();
    });
  }

  /** Every filter's call is answered, with 304 when there is no news, and the next one brings its counters. */
  observe(now: number): Observed {
    const { control } = this.#context;
    const reports = this.#frontendOf.map((frontend, envoy) => {
      if (!control.reaches[frontend]) return undefined;
      const vm = this.#vmAt(envoy, now);
      if (vm.call && this.#installedAt !== now) this.#answer(vm, frontend);
      if (!vm.call) vm.tick();
      return vm.call && decodeUsageReport(vm.call.body);
    });
    this.#nowMs = wallMs(now);
    reports.forEach((report, envoy) => {
      this.#displaced.add(`${this.#frontendOf[envoy]}`, nodeOf(envoy), report?.displaced ?? []);
    });
    return { reports, probedUp: [...control.ready] };
  }

  /** There is no new snapshot, but perhaps others of the frontend have displaced keys. */
  #answer(vm: Vm, frontend: number): void {
    const known = vm.call!.headers.find(([name]) => name === SYNC_DISPLACED_HEADER)?.[1];
    const news = this.#displaced.after(`${frontend}`, vm.host.nodeId, Number(known));
    if (news) vm.answer(200, encodeDisplaced(news));
    else vm.answer(304);
  }

  async update(telemetry: Telemetry, now: number, observed: unknown): Promise<void> {
    const { reports, probedUp } = observed as Observed;
    const { scenario } = this.#context;
    const { engines } = scenario;
    const atMs = wallMs(now);
    reports.forEach((report, envoy) => {
      if (report) this.#loop.report(envoy, report, atMs);
    });
    // What probes say has been confirmed once already; the control server wants to hear it twice.
    engines.forEach(({ engineId }, index) => {
      const address = addressOf(scenario, index);
      for (let probe = 0; probe < 2; probe++) this.#loop.probe(engineId, address, probedUp[index]!, atMs);
    });
    this.#loop.readPages(telemetry.engines, atMs);
    if (!(await this.#loop.step(atMs))) return;
    this.#issue(now);
    this.#vms.forEach((_, envoy) => {
      this.#vmAt(envoy, now);
    });
    this.#install();
    this.#installedAt = now;
  }

  get detectsDrift(): boolean {
    const { view } = this.#loop;
    return driftingProfiles(view, view.state.atMs).size > 0;
  }

  weights(frontend: number, pool: number): readonly number[] | undefined {
    return this.#weights[frontend]![pool];
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  #vmAt(envoy: number, now: number): Vm {
    const vm = this.#vms[envoy]!;
    vm.host.nowMs = wallMs(now);
    return vm;
  }

  #issue(now: number): void {
    const { scenario } = this.#context;
    const { plan, view, config, relief } = this.#loop;
    if (plan === null) throw new Error('the first plan failed');
    this.#version++;
    this.#snapshots = scenario.frontends.map(({ id }) =>
      encodeSnapshot(
        buildSnapshotView({
          plan,
          fleet: config.fleet,
          engines: view.state.engines,
          frontendId: id,
          version: this.#version,
          salt: this.#salt,
          issuedAtMs: Math.round(wallMs(now)),
          relief,
        }),
      ),
    );
    this.#weights = scenario.frontends.map((_, frontend) =>
      scenario.pools.map((_, pool) => {
        const next = this.#loop.weightsOf(frontend, pool);
        const last = this.#weights[frontend]?.[pool];
        return last?.every((weight, engine) => weight === next[engine]) ? last : next;
      }),
    );
  }

  #install(): void {
    const { reaches } = this.#context.control;
    this.#vms.forEach((vm, envoy) => {
      const frontend = this.#frontendOf[envoy]!;
      if (!reaches[frontend]) return;
      if (!vm.call) vm.tick();
      vm.answer(200, this.#snapshots[frontend]!);
    });
  }
}

const FIRST = '{"role":"user","content":""}';
const FIRST_BODY = `{"messages":[${FIRST}]}`;
const LATER_BODY = `{"messages":[${FIRST},{"role":"assistant","content":""},${FIRST}]}`;

/** As engines tell it that are asked to name what they found in their caches. */
function usage({ promptTokens, cachedTokens, turn }: RoutedRequest): string {
  const details = `"prompt_tokens_details":{"cached_tokens":${cachedTokens}}`;
  return `"usage":{"prompt_tokens":${promptTokens},"completion_tokens":${turn.outputTokens},${details}}`;
}
