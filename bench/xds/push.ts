import * as grpc from '@grpc/grpc-js';
import type { Fleet } from '../../xds-server/fleet/fleet.js';
import { engineStates } from '../../xds-server/fleet/testing/engine-states.js';
import { buildResources, frontendOf, XdsServer } from '../../xds-server/xds/index.js';
import { ENDPOINTS_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { encodeSotwResponse } from '../../xds-server/xds/transport/codec.js';
import { quantile } from '../filter/statistics.js';
import { Clients } from './clients.js';
import { type FleetSize, fleetOf, weightsAt } from './fleet.js';
import { monotonicMs, RAW_PATH } from './stream-client.js';

/** Milliseconds from the push to a stream's having all of it; `p99` over the streams, medians over the pushes. */
export interface PushResult {
  readonly streams: number;
  readonly bytesPerStream: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly lastMs: number;
  /** The same bytes on the same connections, written without any server logic. */
  readonly rawP50Ms: number;
  readonly rawP99Ms: number;
  readonly rawLastMs: number;
  /** CPU of the server's process per push. */
  readonly serverCpuMs: number;
  readonly rawCpuMs: number;
  readonly rssMiB: number;
}

export interface PushOptions {
  readonly size: FleetSize;
  readonly streams: number;
  readonly pushes: number;
}

const silent = { info() {}, warn() {}, error() {} };

/** A server with clients in a process of their own, all of which hold the first weights. */
export class PushWorld {
  readonly fleet: Fleet;
  readonly server: XdsServer;
  readonly clients = new Clients();
  readonly #streams: number;
  readonly #raw = new Map<string, grpc.ServerDuplexStream<Buffer, Buffer>[]>();
  #turn = 0;
  #address = '';
  readonly #stuck = new Clients();

  private constructor({ size, streams }: PushOptions) {
    this.fleet = fleetOf(size);
    this.#streams = streams;
    this.server = this.#createServer();
  }

  static async start(options: PushOptions): Promise<PushWorld> {
    const world = new PushWorld(options);
    try {
      world.#address = await world.server.start();
      world.#publish();
      await world.#open(world.clients, options.streams, 'client');
      await world.#settled();
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  /**
   * Pushes new weights to all, and tells how many milliseconds later each stream had them. Waits until every client has
   * answered, unless there are some that never will.
   */
  async push({ waitForAll = true } = {}): Promise<{ readonly delaysMs: number[]; readonly cpuMs: number }> {
    const cpu = process.cpuUsage();
    const startMs = monotonicMs();
    this.#publish();
    const arrivals = await this.clients.next('response');
    if (waitForAll) await this.#settled();
    // The last acknowledgements may still be under way; a push before them would skip a state.
    else await new Promise((resolve) => setTimeout(resolve, 20));
    return { delaysMs: arrivals.map((atMs) => atMs - startMs), cpuMs: millisecondsSince(cpu) };
  }

  /** Writes the very same bytes again, to streams beside the real ones. */
  async pushRaw(): Promise<{ readonly delaysMs: number[]; readonly cpuMs: number }> {
    const bodies = this.fleet.frontends.map(({ id }) => [id, this.#response(id)] as const);
    const cpu = process.cpuUsage();
    const startMs = monotonicMs();
    for (const [id, body] of bodies) for (const call of this.#raw.get(id) ?? []) call.write(body);
    const arrivals = await this.clients.next('raw');
    return { delaysMs: arrivals.map((atMs) => atMs - startMs), cpuMs: millisecondsSince(cpu) };
  }

  /** Opens streams whose clients take the first response and then read nothing more. */
  async openStuck(streams: number): Promise<void> {
    await this.#open(this.#stuck, streams, 'stuck');
    this.#stuck.signal('SIGSTOP');
  }

  async #open(clients: Clients, streams: number, prefix: string): Promise<void> {
    clients.send({
      kind: 'open',
      address: this.#address,
      streams,
      frontends: this.fleet.frontends.length,
      names: this.fleet.pools.map(({ id }) => id),
      raw: clients === this.clients,
      prefix,
    });
    await clients.next('response');
  }

  get bytesPerStream(): number {
    return this.#response(this.fleet.frontends[0]!.id).length;
  }

  async stop(): Promise<void> {
    this.clients.stop();
    this.#stuck.stop();
    await this.server.stop();
  }

  /** The control server's, with one more service on it; only here is its gRPC server reached for. */
  #createServer(): XdsServer {
    const { prototype } = grpc.Server;
    const { addService } = prototype;
    let inner: grpc.Server | undefined;
    prototype.addService = function (...args) {
      inner = this;
      addService.apply(this, args);
    };
    try {
      const server = new XdsServer({
        listen: '127.0.0.1:0',
        resolveFrontend: (node) => frontendOf(node, this.fleet.frontends),
        log: silent,
      });
      const plain = { serialize: (bytes: Buffer) => bytes, deserialize: (bytes: Buffer) => bytes };
      const method = {
        path: RAW_PATH,
        requestStream: true,
        responseStream: true,
        requestSerialize: plain.serialize,
        requestDeserialize: plain.deserialize,
        responseSerialize: plain.serialize,
        responseDeserialize: plain.deserialize,
      } as const;
      addService.call(
        inner!,
        { raw: method },
        { raw: (call: grpc.ServerDuplexStream<Buffer, Buffer>) => this.#openRaw(call) },
      );
      return server;
    } finally {
      prototype.addService = addService;
    }
  }

  #openRaw(call: grpc.ServerDuplexStream<Buffer, Buffer>): void {
    call.on('error', () => {});
    call.once('data', (request: Buffer) => {
      const frontendId = request.subarray(2).toString();
      this.#raw.set(frontendId, [...(this.#raw.get(frontendId) ?? []), call]);
    });
  }

  #publish(): void {
    const turn = this.#turn++;
    const plan = weightsAt(this.fleet, turn);
    for (const { id } of this.fleet.frontends) this.server.setResources(id, this.#resources(id, plan));
  }

  #resources(frontendId: string, plan = weightsAt(this.fleet, this.#turn - 1)) {
    return buildResources({
      fleet: this.fleet,
      frontendId,
      plan,
      engines: engineStates(this.fleet),
      wasmModule: new Uint8Array([0]),
      filter: { frontendId },
    });
  }

  #response(frontendId: string): Buffer {
    const node = {
      id: 'n',
      cluster: frontendId,
      region: '',
      metadata: {},
      userAgent: '',
      userAgentVersion: '',
    };
    const { version, resources } = this.#resources(frontendId).viewOf(node).get(ENDPOINTS_TYPE)!;
    return encodeSotwResponse({
      version,
      resources: [...resources.values()],
      removed: [],
      typeUrl: ENDPOINTS_TYPE,
      nonce: '1',
    });
  }

  async #settled(): Promise<void> {
    for (const { id } of this.fleet.frontends) {
      if (!(await this.server.settled(id, 60_000)))
        throw new Error(`${this.#streams} clients did not all answer`);
    }
  }
}

/** Pushes by the control server and raw writes in turns, so that both meet the same machine. */
export async function measurePush(options: PushOptions): Promise<PushResult> {
  const world = await PushWorld.start(options);
  try {
    await world.push();
    await world.pushRaw();
    const ours: Sample[] = [];
    const raw: Sample[] = [];
    for (let i = 0; i < options.pushes; i++) {
      ours.push(sampleOf(await world.push()));
      raw.push(sampleOf(await world.pushRaw()));
    }
    const [mine, bare] = [typical(ours), typical(raw)];
    return {
      streams: options.streams,
      bytesPerStream: world.bytesPerStream,
      p50Ms: mine.p50,
      p99Ms: mine.p99,
      lastMs: mine.last,
      rawP50Ms: bare.p50,
      rawP99Ms: bare.p99,
      rawLastMs: bare.last,
      serverCpuMs: mine.cpu,
      rawCpuMs: bare.cpu,
      rssMiB: process.memoryUsage.rss() / 2 ** 20,
    };
  } finally {
    await world.stop();
  }
}

interface Sample {
  readonly p50: number;
  readonly p99: number;
  readonly last: number;
  readonly cpu: number;
}

export function sampleOf({
  delaysMs,
  cpuMs,
}: {
  readonly delaysMs: readonly number[];
  readonly cpuMs: number;
}): Sample {
  const sorted = [...delaysMs].sort((a, b) => a - b);
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), last: sorted.at(-1)!, cpu: cpuMs };
}

/** Medians over the samples. */
export function typical(samples: readonly Sample[]): Sample {
  const of = (key: keyof Sample) =>
    quantile(
      samples.map((sample) => sample[key]).sort((a, b) => a - b),
      0.5,
    );
  return { p50: of('p50'), p99: of('p99'), last: of('last'), cpu: of('cpu') };
}

function millisecondsSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
