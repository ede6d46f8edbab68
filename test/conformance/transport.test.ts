import { once } from 'node:events';
import { connect } from 'node:http2';
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { AnySchema, anyUnpack } from '@bufbuild/protobuf/wkt';
import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Frontend } from '../../xds-server/fleet/fleet.js';
import { ClusterLoadAssignmentSchema } from '../../xds-server/gen/envoy/config/endpoint/v3/endpoint_pb.js';
import {
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../xds-server/gen/envoy/service/discovery/v3/discovery_pb.js';
import {
  buildResources,
  frontendOf,
  logGrpcTo,
  type Nack,
  XdsServer,
  type XdsServerOptions,
} from '../../xds-server/xds/index.js';
import { createCollection, createResource, type View } from '../../xds-server/xds/protocol/resource.js';
import { CLUSTER_TYPE, ENDPOINTS_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { PATIENCE_MS } from '../patience.js';
import { CertificateAuthority } from './certificates.js';
import { fleetOf, planOf, statesOf } from './envoy/fleet.js';
import { type Received, viewOf } from './messages.js';
import { socketWire, type Wire } from './server.js';

const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';
const DELTA_ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources';
const CDS = '/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters';
/** Bytes of a resource that no socket buffer takes many of. */
const BIG = 200_000;
const frontends: Frontend[] = [
  { id: 'west', region: 'westeurope', listen: '127.0.0.1:1' },
  { id: 'east', region: 'eastus', listen: '127.0.0.1:1' },
];
const node = {
  id: 'n1',
  cluster: 'west',
  region: '',
  metadata: {},
  userAgent: '',
  userAgentVersion: '',
};
const firstRequest = { node, typeUrl: CLUSTER_TYPE, versionInfo: '', resourceNames: [], responseNonce: '' };

describe('the gRPC server', () => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function start(options: Partial<XdsServerOptions> = {}) {
    const logged: unknown[][] = [];
    const record = (...args: unknown[]) => void logged.push(args);
    const server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: (identity) => frontendOf(identity, frontends),
      log: { info: record, warn: record, error: record },
      ...options,
    });
    const address = await server.start();
    closers.push(() => server.stop());
    return { server, address, logged };
  }

  function open(
    address: string,
    path = ADS,
    options: { credentials?: grpc.ChannelCredentials; token?: string } = {},
  ) {
    const client = new grpc.Client(address, options.credentials ?? grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    const metadata = new grpc.Metadata();
    if (options.token !== undefined) metadata.set('authorization', `Bearer ${options.token}`);
    const wire = socketWire(client, path, metadata);
    closers.push(() => client.close());
    return wire;
  }

  const publish = (server: XdsServer, view: View) => server.setResources('west', { viewOf: () => view });
  const failure = async (wire: Wire): Promise<grpc.ServiceError> =>
    wire.next().then(
      () => expect.unreachable('the stream should have ended'),
      (error) => error as grpc.ServiceError,
    );

  it('refuses a node of no frontend with a status that names the frontends', async () => {
    const { address, server } = await start();
    const wire = open(address);
    wire.send({ ...firstRequest, node: { ...node, cluster: 'north' } });
    const { code, details } = await failure(wire);
    expect(code).toBe(grpc.status.INVALID_ARGUMENT);
    expect(details).toContain('set metadata.wardrop.frontend to one of: west, east');
    expect(server.nodes()).toEqual([]);
  });

  it('refuses a stream whose token is missing or wrong, before it reads a request', async () => {
    const { address, server } = await start({ token: 'secret' });
    publish(server, viewOf({ cds: { a: '1' } }));
    for (const token of [undefined, 'wrong', 'secret2']) {
      const wire = open(address, ADS, token === undefined ? {} : { token });
      expect((await failure(wire)).code).toBe(grpc.status.UNAUTHENTICATED);
    }
    const wire = open(address, ADS, { token: 'secret' });
    wire.send(firstRequest);
    expect((await wire.next()).resources).toEqual({ a: '1' });
  });

  it('logs and lists who is refused once, however often it comes again, and another reason besides', async () => {
    const { address, logged, server } = await start({ token: 'secret' });
    for (let again = 0; again < 3; again++) {
      expect((await failure(open(address))).code).toBe(grpc.status.UNAUTHENTICATED);
    }
    const stranger = open(address, ADS, { token: 'secret' });
    stranger.send({ ...firstRequest, node: { ...node, cluster: 'north' } });
    await failure(stranger);
    const codes = logged.map(([details]) => (details as { code?: string }).code);
    expect(codes.filter((code) => code !== undefined)).toEqual([
      'WARDROP_UNAUTHENTICATED',
      'WARDROP_NODE_UNKNOWN',
    ]);
    const host = '127.0.0.1';
    expect(server.refusals()).toMatchObject([
      { host, reason: 'the xDS token is missing or wrong' },
      { host, reason: expect.stringContaining('"north"') },
    ]);
  });

  it('serves TLS, and with a client authority only those who show a certificate of it', async () => {
    const authority = new CertificateAuthority();
    const own = authority.issue('127.0.0.1');
    const { address, server } = await start({
      tls: { certificate: own.certificate, key: own.key, clientCa: authority.certificate },
    });
    publish(server, viewOf({ cds: { a: '1' } }));
    const client = authority.issue('envoy');
    const stranger = new CertificateAuthority().issue('envoy');
    const tls = (who: typeof client) =>
      grpc.credentials.createSsl(authority.certificate, who.key, who.certificate);
    const wire = open(address, ADS, { credentials: tls(client) });
    wire.send(firstRequest);
    expect((await wire.next()).resources).toEqual({ a: '1' });
    const other = open(address, ADS, { credentials: tls(stranger) });
    other.send(firstRequest);
    expect((await failure(other)).code).toBe(grpc.status.UNAVAILABLE);
  });

  it('says that a port is taken, and what gRPC says of it goes to the log', async () => {
    const { address } = await start();
    const toTerminal = vi.spyOn(console, 'error');
    const warn = vi.fn();
    logGrpcTo({ warn });
    await expect(start({ listen: address })).rejects.toMatchObject({ code: 'WARDROP_PORT_IN_USE' });
    expect(toTerminal).not.toHaveBeenCalled();
    expect(warn).toHaveBeenCalledExactlyOnceWith({ by: 'gRPC' }, expect.stringContaining('No address added'));
  });

  it('ends its streams without an error when it stops, and frees the port', async () => {
    const { address, server } = await start();
    publish(server, viewOf({ cds: { a: '1' } }));
    const wire = open(address);
    wire.send(firstRequest);
    await wire.next();
    await server.stop();
    expect(await wire.status).toBe(grpc.status.OK);
    await start({ listen: address });
  });

  it('serves a single type on its own service, named or not, and no other', async () => {
    const { address, server } = await start();
    publish(server, viewOf({ cds: { a: '1' } }));
    const wire = open(address, CDS);
    wire.send({ ...firstRequest, typeUrl: '' });
    expect(await wire.next()).toMatchObject({ type: 'cds', resources: { a: '1' } });
    wire.send({ ...firstRequest, typeUrl: ENDPOINTS_TYPE, resourceNames: ['a'] });
    expect((await failure(wire)).code).toBe(grpc.status.INVALID_ARGUMENT);
  });

  it('sends and takes messages of more than 4 MiB', async () => {
    const { address, server } = await start();
    const content = 'x'.repeat(6 * 2 ** 20);
    publish(server, viewOf({ cds: { big: content } }));
    const wire = open(address);
    wire.send(firstRequest);
    expect((await wire.next()).resources.big).toBe(content);

    const initialVersions = Object.fromEntries(
      Array.from({ length: 60_000 }, (_, i) => [`${'cluster-with-a-long-name-'.repeat(3)}${i}`, String(i)]),
    );
    const delta = open(address, DELTA_ADS);
    const nothing = { subscribe: [], unsubscribe: [], initialVersions: {} };
    delta.send({
      ...nothing,
      node,
      typeUrl: CLUSTER_TYPE,
      subscribe: ['*'],
      initialVersions,
      responseNonce: '',
    });
    const received = await delta.next();
    expect(Object.keys(received.resources)).toEqual(['big']);
    delta.send({ ...nothing, typeUrl: CLUSTER_TYPE, responseNonce: received.nonce });
    expect((await delta.next()).removed).toHaveLength(60_000);
  });

  it('sends an assignment of 20 000 endpoints', async () => {
    const { address, server } = await start();
    const addresses = Array.from({ length: 20_000 }, (_, i) => `10.0.${i >> 8}.${i & 255}:8000`);
    const fleet = fleetOf('127.0.0.1:1', { a: addresses });
    server.setResources(
      'west',
      buildResources({
        fleet,
        frontendId: 'west',
        plan: planOf(fleet, { a: 1 }),
        engines: statesOf(fleet),
        wasmModule: new Uint8Array([0]),
        filter: { frontendId: 'west' },
      }),
    );
    const client = new grpc.Client(address, grpc.credentials.createInsecure(), {
      'grpc.max_receive_message_length': -1,
    });
    closers.push(() => client.close());
    const received = await new Promise<Buffer>((resolve, reject) => {
      const call = client.makeBidiStreamRequest(
        ADS,
        (bytes: Buffer) => bytes,
        (bytes) => bytes,
      );
      call.on('data', resolve);
      call.on('error', reject);
      const request = create(DiscoveryRequestSchema, {
        node: { id: 'n1', cluster: 'west' },
        typeUrl: ENDPOINTS_TYPE,
        resourceNames: ['m1'],
      });
      call.write(Buffer.from(toBinary(DiscoveryRequestSchema, request)));
    });
    const [any] = fromBinary(DiscoveryResponseSchema, received).resources;
    const assignment = anyUnpack(any!, ClusterLoadAssignmentSchema)!;
    expect(assignment.endpoints.flatMap(({ lbEndpoints }) => lbEndpoints)).toHaveLength(20_000);
  });

  it('reports a rejection with so much of its text as tells the fault, and logs the beginning of that', async () => {
    const nacks: Nack[] = [];
    const { address, server, logged } = await start({ onNack: (nack) => nacks.push(nack) });
    publish(server, viewOf({ cds: { a: 'bad' } }));
    const wire = open(address);
    wire.send(firstRequest);
    const { nonce, version } = await wire.next();
    const reason = 'e'.repeat(2 ** 20);
    wire.send({ ...firstRequest, responseNonce: nonce, error: reason });
    await vi.waitUntil(() => nacks.length > 0, PATIENCE_MS);
    expect(await server.settled('west', 0)).toBe(false);
    expect(nacks).toMatchObject([
      { nodeId: 'n1', frontendId: 'west', typeUrl: CLUSTER_TYPE, version, reason: reason.slice(0, 10_000) },
    ]);
    expect(JSON.stringify(logged).length).toBeLessThan(10_000);
    expect(JSON.stringify(logged)).toContain('rejected its configuration');
  });

  it('keeps nothing for a client that does not answer, which gets the newest state later', async () => {
    const { address, server } = await start();
    const slow = open(address);
    const quick = open(address);
    const { node: _, ...request } = firstRequest;
    publish(server, bigView(0));
    slow.send({ ...firstRequest, node: { ...node, id: 'slow' } });
    quick.send({ ...firstRequest, node: { ...node, id: 'quick' } });
    const ack = (wire: Wire, { version, nonce }: Received) =>
      wire.send({ ...request, versionInfo: version, responseNonce: nonce });
    for (let i = 0; i < 50; i++) {
      const received = await quick.next();
      expect(received.resources.big?.length).toBe(BIG);
      ack(quick, received);
      publish(server, bigView(i + 1));
    }
    const first = await slow.next();
    ack(slow, first);
    const second = await slow.next();
    ack(slow, second);
    expect(second.version).toBe(bigView(50).get(CLUSTER_TYPE)!.version);
    expect(await server.settled('west', 20)).toBe(false);
    ack(quick, await quick.next());
    expect(await server.settled('west', 5000)).toBe(true);
  });

  it('waits for the acknowledgements of all Envoys of a frontend, and of no others', async () => {
    const { address, server } = await start();
    expect(await server.settled('west', 1)).toBe(true);
    publish(server, viewOf({ cds: { a: '1' } }));
    const wire = open(address);
    wire.send(firstRequest);
    const received = await wire.next();
    const settled = server.settled('west', 10_000);
    expect(await server.settled('east', 1)).toBe(true);
    wire.send({ ...firstRequest, versionInfo: received.version, responseNonce: received.nonce });
    expect(await settled).toBe(true);
  });

  it('never sends a client away for its pings', async () => {
    const { address, server } = await start();
    publish(server, viewOf({ cds: { a: '1' } }));
    const session = connect(`http://${address}`);
    closers.push(() => session.destroy());
    await once(session, 'connect');
    let sentAway = false;
    session.once('goaway', () => {
      sentAway = true;
    });
    for (let sent = 0; sent < 300; sent++) {
      await new Promise<void>((resolve, reject) => {
        session.ping((error) => (error === null ? resolve() : reject(error)));
      });
    }
    expect([sentAway, session.closed]).toEqual([false, false]);
  });

  it('forgets a client whose connection breaks', async () => {
    const { address, server } = await start();
    publish(server, viewOf({ cds: { a: '1' } }));
    const wire = open(address);
    wire.send(firstRequest);
    await wire.next();
    expect(server.nodes()).toHaveLength(1);
    wire.cancel();
    // It owed an acknowledgement; without it there is nothing left to wait for.
    expect(await server.settled('west', 10_000)).toBe(true);
    expect(server.nodes()).toEqual([]);
  });
});

function bigView(content: number): View {
  const value = Buffer.from(`big=${String(content).padEnd(BIG, 'x')}`);
  const any = toBinary(AnySchema, create(AnySchema, { typeUrl: CLUSTER_TYPE, value }));
  return new Map([[CLUSTER_TYPE, createCollection([createResource('big', any)])]]);
}
