import { readFileSync } from 'node:fs';
import type { JsonObject } from '@bufbuild/protobuf';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { id64 } from '../../wire/hash.js';
import { CLUSTER_HEADER, DESTINATION_HEADER } from '../../wire/names.js';
import type { UsageReport } from '../../wire/usage-report.js';
import { LoadCounts } from '../../xds-server/signals/usage/load-counts.js';
import { buildResources, frontendOf, XdsServer } from '../../xds-server/xds/index.js';
import { EXTENSION_TYPE, LISTENER_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { eventually } from '../e2e/harness/process.js';
import { StubEngine } from '../e2e/harness/stub-engine.js';
import { freePorts } from '../free-ports.js';
import { Envoy } from './envoy/envoy.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { decide, steeringModule } from './envoy/steering-module.js';
import { silent } from './silent.js';

// Starting Envoy takes a while on a busy machine.
vi.setConfig({ hookTimeout: 60_000, testTimeout: 60_000 });

const wasmModule = steeringModule();

/** Starts an Envoy by one of our examples, on free ports and with this xDS server. */
async function startExample(file: string, xdsAddress: string): Promise<{ envoy: Envoy; url: string }> {
  const [listenPort, adminPort, syncPort] = await freePorts(3);
  const example = readFileSync(new URL(`../../envoy/standalone/${file}`, import.meta.url), 'utf8')
    .replace('8080', String(listenPort))
    .replace('9901', String(adminPort))
    .replace('18000', xdsAddress.split(':')[1]!)
    .replace('18001', String(syncPort))
    .replace('MODEL', 'm1');
  const envoy = await Envoy.start(parse(example) as JsonObject, `127.0.0.1:${adminPort}`);
  await envoy.ready();
  return { envoy, url: `http://127.0.0.1:${listenPort}` };
}

describe('Envoy with a listener of its own', () => {
  const stubs = { a: new StubEngine('a'), b: new StubEngine('b') };
  let server: XdsServer;
  let envoy: Envoy;
  let url: string;

  beforeAll(async () => {
    await Promise.all(Object.values(stubs).map((stub) => stub.start()));
    const fleet = fleetOf('127.0.0.1:1', { a: [stubs.a.address], b: [stubs.b.address] });
    server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (node) => frontendOf(node, fleet.frontends),
      log: silent,
    });
    const address = await server.start();
    const input = { fleet, frontendId: 'west', plan: planOf(fleet, { a: 1 }), engines: statesOf(fleet) };
    server.setResources('west', buildResources({ ...input, wasmModule, filter: { frontendId: 'west' } }));
    ({ envoy, url } = await startExample('own-listener.yaml', address));
  });

  afterAll(async () => {
    await envoy?.stop();
    await server?.stop();
    await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  });

  it('takes the filter by extension discovery, and routes, clusters and endpoints with it', async () => {
    expect(await server.settled('west', 10_000)).toBe(true);
    const { types } = server.nodes()[0]!;
    expect(types[EXTENSION_TYPE]).toMatchObject({ status: 'synced', subscribed: ['wardrop'] });
    expect(Object.keys(types)).not.toContain(LISTENER_TYPE);
  });

  it('is steered by the filter and by no client', async () => {
    const response = await fetch(`${url}/v1/chat/completions`, {
      headers: {
        [decide.cluster]: 'm1',
        [decide.destination]: stubs.b.address,
        [DESTINATION_HEADER]: stubs.a.address,
      },
    });
    expect(response.headers.get('x-stub')).toBe('b');
    const spoofed = { [CLUSTER_HEADER]: 'm1', [DESTINATION_HEADER]: stubs.b.address };
    expect((await fetch(url, { headers: spoofed })).status).toBe(503);
  });

  it('logs nothing suspicious', () => {
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  });
});

describe('Envoy without the filter', () => {
  const stubs = { a: new StubEngine('a'), b: new StubEngine('b') };
  const reported: UsageReport[] = [];
  const opened: string[] = [];
  let server: XdsServer;
  let envoy: Envoy;
  let url: string;

  beforeAll(async () => {
    await Promise.all(Object.values(stubs).map((stub) => stub.start()));
    const fleet = fleetOf('127.0.0.1:1', { a: [stubs.a.address], b: [stubs.b.address] });
    server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (node) => frontendOf(node, fleet.frontends),
      loadReports: {
        clusters: () => fleet.pools.map(({ id }) => id),
        open: (frontendId, nodeId) => {
          opened.push(`${frontendId} ${nodeId}`);
          const counts = new LoadCounts(1n);
          return (report) => void reported.push(counts.add(report));
        },
      },
      log: silent,
    });
    const address = await server.start();
    const weights = { a: 0.5, b: 0.5 };
    const input = { fleet, frontendId: 'west', plan: planOf(fleet, weights), engines: statesOf(fleet) };
    const native = { steering: 'maglev' as const, wasmModule, filter: { frontendId: 'west' } };
    server.setResources('west', buildResources({ ...input, ...native }));
    ({ envoy, url } = await startExample('without-filter.yaml', address));
  });

  afterAll(async () => {
    await envoy?.stop();
    await server?.stop();
    await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
  });

  const latest = () => {
    const { pools, engines, replicas } = reported.at(-1)!.vms[0]!;
    const { a, b } = { a: id64('a'), b: id64('b') };
    const of = (engine: bigint) => engines.find((usage) => usage.engine === engine);
    const underWay = (engine: bigint) => replicas.find((usage) => usage.engine === engine)?.sent ?? 0;
    return { offered: pools[0]?.offered, a: of(a), b: of(b), underWay: underWay(a) + underWay(b) };
  };

  it('reports every request with its engine and outcome, and those under way', async () => {
    expect(await server.settled('west', 10_000)).toBe(true);
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
        fetch(`${url}/v1/chat/completions`, { headers: { 'x-session-id': String(i) } }),
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
    expect(suspiciousLines(envoy.process.output)).toEqual([]);
  });
});
