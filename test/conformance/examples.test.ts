import { readFileSync } from 'node:fs';
import type { JsonObject } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { id64 } from '../../wire/hash.js';
import { CLUSTER_HEADER, DESTINATION_HEADER } from '../../wire/names.js';
import type { UsageReport } from '../../wire/usage-report.js';
import { LoadCounts } from '../../xds-server/signals/usage/load-counts.js';
import {
  buildResources,
  frontendOf,
  type Steering,
  XdsServer,
  type XdsServerOptions,
} from '../../xds-server/xds/index.js';
import { EXTENSION_TYPE, LISTENER_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { eventually } from '../e2e/harness/process.js';
import { StubEngine } from '../e2e/harness/stub-engine.js';
import { freePorts } from '../free-ports.js';
import { Envoy } from './envoy/envoy.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { decide, steeringModule } from './envoy/steering-module.js';
import { silent } from './silent.js';

const wasmModule = steeringModule();

type OpenLoadReports = NonNullable<XdsServerOptions['loadReports']>['open'];

/** Engines a and b that serve one model, an xDS server with a plan for them, and an Envoy by one of our examples. */
class Example {
  readonly stubs = { a: new StubEngine('a'), b: new StubEngine('b') };
  url = '';
  #server: XdsServer | undefined;
  #envoy: Envoy | undefined;

  get server(): XdsServer {
    return this.#server!;
  }

  get output(): string {
    return this.#envoy!.process.output;
  }

  async start(
    file: string,
    weights: Readonly<Record<string, number>>,
    { steering, openLoadReports }: { steering?: Steering; openLoadReports?: OpenLoadReports } = {},
  ): Promise<void> {
    const { a, b } = this.stubs;
    await Promise.all([a.start(), b.start()]);
    const fleet = fleetOf('127.0.0.1:1', { a: [a.address], b: [b.address] });
    this.#server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (node) => frontendOf(node, fleet.frontends),
      ...(openLoadReports && {
        loadReports: { clusters: () => fleet.pools.map(({ id }) => id), open: openLoadReports },
      }),
      log: silent,
    });
    const address = await this.#server.start();
    this.#server.setResources(
      'west',
      buildResources({
        fleet,
        frontendId: 'west',
        plan: planOf(fleet, weights),
        engines: statesOf(fleet),
        wasmModule,
        filter: { frontendId: 'west' },
        ...(steering && { steering }),
      }),
    );
    await this.#startEnvoy(file, address);
  }

  async stop(): Promise<void> {
    await this.#envoy?.stop();
    await this.#server?.stop();
    await Promise.all(Object.values(this.stubs).map((stub) => stub.kill()));
  }

  /** On free ports. */
  async #startEnvoy(file: string, xdsAddress: string): Promise<void> {
    const [listenPort, adminPort, syncPort] = await freePorts(3);
    const changes: Readonly<Record<string, number | string>> = {
      8080: listenPort!,
      9901: adminPort!,
      18000: xdsAddress.split(':')[1]!,
      18001: syncPort!,
      MODEL: 'm1',
    };
    // At once: a port may look like another one's end.
    const example = readFileSync(new URL(`../../envoy/standalone/${file}`, import.meta.url), 'utf8').replace(
      /\b(8080|9901|1800[01]|MODEL)\b/g,
      (text) => String(changes[text]),
    );
    this.#envoy = await Envoy.start(parse(example) as JsonObject, `127.0.0.1:${adminPort}`);
    this.url = `http://127.0.0.1:${listenPort}`;
    await this.#envoy.ready();
  }
}

describe('Envoy with a listener of its own', () => {
  const example = new Example();
  const { stubs } = example;
  beforeAll(() => example.start('own-listener.yaml', { a: 1 }));
  afterAll(() => example.stop());

  it('takes the filter by extension discovery, and routes, clusters and endpoints with it', async () => {
    expect(await example.server.settled('west', 10_000)).toBe(true);
    const { types } = example.server.nodes()[0]!;
    expect(types[EXTENSION_TYPE]).toMatchObject({
      status: 'synced',
      subscribed: ['wardrop', 'wardrop-next'],
    });
    expect(Object.keys(types)).not.toContain(LISTENER_TYPE);
  });

  it('is steered by the filter and by no client', async () => {
    const response = await fetch(`${example.url}/v1/chat/completions`, {
      headers: {
        [decide.cluster]: 'm1',
        [decide.destination]: stubs.b.address,
        [DESTINATION_HEADER]: stubs.a.address,
      },
    });
    expect(response.headers.get('x-stub')).toBe('b');
    const spoofed = { [CLUSTER_HEADER]: 'm1', [DESTINATION_HEADER]: stubs.b.address };
    expect((await fetch(example.url, { headers: spoofed })).status).toBe(503);
  });

  it('logs nothing suspicious', () => {
    expect(suspiciousLines(example.output)).toEqual([]);
  });
});

describe('Envoy without the filter', () => {
  const example = new Example();
  const { stubs } = example;
  const reported: UsageReport[] = [];
  const opened: string[] = [];
  beforeAll(() =>
    example.start(
      'without-filter.yaml',
      { a: 0.5, b: 0.5 },
      {
        steering: 'maglev',
        openLoadReports: (frontendId, nodeId) => {
          opened.push(`${frontendId} ${nodeId}`);
          const counts = new LoadCounts(1n);
          return (report) => void reported.push(counts.add(report));
        },
      },
    ),
  );
  afterAll(() => example.stop());

  const latest = () => {
    const { pools, engines, replicas } = reported.at(-1)!.vms[0]!;
    const { a, b } = { a: id64('a'), b: id64('b') };
    const of = (engine: bigint) => engines.find((usage) => usage.engine === engine);
    const underWay = (engine: bigint) => replicas.find((usage) => usage.engine === engine)?.sent ?? 0;
    return { offered: pools[0]?.offered, a: of(a), b: of(b), underWay: underWay(a) + underWay(b) };
  };

  it('reports every request with its engine and outcome, and those under way', async () => {
    expect(await example.server.settled('west', 10_000)).toBe(true);
    await eventually('reports on the cluster', () => reported.at(-1)?.vms[0]?.pools.length === 1);
    expect(opened).toEqual(['west west-1']);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    stubs.b.behaviour = (_request, response) => {
      void held.then(() => response.writeHead(503).end());
    };
    const answers = Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        fetch(`${example.url}/v1/chat/completions`, { headers: { 'x-session-id': String(i) } }),
      ),
    );
    await eventually('all to be sent', () => stubs.a.requests.length + stubs.b.requests.length === 40);
    const atB = stubs.b.requests.length;
    await eventually('the requests at b', () => latest().offered === 40 && latest().underWay === atB);
    expect(latest().b).toMatchObject({ planned: atB, ended: 0 });
    release();
    await answers;
    await eventually('their end', () => latest().underWay === 0);
    expect(atB).toBeGreaterThan(0);
    expect(latest()).toMatchObject({
      offered: 40,
      a: { planned: 40 - atB, ended: 40 - atB, status2xx: 40 - atB, failures: 0 },
      b: { planned: atB, ended: atB, status2xx: 0, failures: atB },
    });
  });

  it('logs nothing suspicious', () => {
    expect(suspiciousLines(example.output)).toEqual([]);
  });
});
