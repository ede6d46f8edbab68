import type { MessageInitShape } from '@bufbuild/protobuf';
import * as grpc from '@grpc/grpc-js';
import * as xds from '@grpc/grpc-js-xds';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  Cluster_DiscoveryType,
  ClusterSchema,
} from '../../xds-server/gen/envoy/config/cluster/v3/cluster_pb.js';
import { ApiVersion } from '../../xds-server/gen/envoy/config/core/v3/config_source_pb.js';
import type { LocalityLbEndpointsSchema } from '../../xds-server/gen/envoy/config/endpoint/v3/endpoint_components_pb.js';
import { ClusterLoadAssignmentSchema } from '../../xds-server/gen/envoy/config/endpoint/v3/endpoint_pb.js';
import { ListenerSchema } from '../../xds-server/gen/envoy/config/listener/v3/listener_pb.js';
import { RouteConfigurationSchema } from '../../xds-server/gen/envoy/config/route/v3/route_pb.js';
import { RouterSchema } from '../../xds-server/gen/envoy/extensions/filters/http/router/v3/router_pb.js';
import { HttpConnectionManagerSchema } from '../../xds-server/gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import {
  RingHash_HashFunction,
  RingHashSchema,
} from '../../xds-server/gen/envoy/extensions/load_balancing_policies/ring_hash/v3/ring_hash_pb.js';
import { XdsServer } from '../../xds-server/xds/index.js';
import { createCollection } from '../../xds-server/xds/protocol/resource.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
} from '../../xds-server/xds/protocol/type-url.js';
import { envoyAddress } from '../../xds-server/xds/resources/address.js';
import { clusterOf } from '../../xds-server/xds/resources/clusters.js';
import { extension, filter, pack, resource } from '../../xds-server/xds/resources/pack.js';
import { eventually } from '../e2e/harness/process.js';
import { silent } from './silent.js';

const pool = { id: 'm1', model: 'm1', needs: [], engineIds: ['a'] };
type Locality = MessageInitShape<typeof LocalityLbEndpointsSchema>;

/** A locality of one host, as gRPC wants it: with a weight of its own. */
const localityAt = (address: string, priority = 0): Locality => ({
  locality: { region: 'r', subZone: address },
  priority,
  loadBalancingWeight: 1,
  lbEndpoints: [
    {
      hostIdentifier: { case: 'endpoint', value: { address: envoyAddress(address) } },
      loadBalancingWeight: 1,
    },
  ],
});

/** The service `models` for gRPC clients, which take no listener of Envoy's. */
function viewOf(steering: 'round-robin' | 'ring-hash', localities: Locality[]) {
  const manager = pack(HttpConnectionManagerSchema, {
    routeSpecifier: {
      case: 'rds',
      value: {
        routeConfigName: 'routes',
        configSource: {
          resourceApiVersion: ApiVersion.V3,
          configSourceSpecifier: { case: 'ads', value: {} },
        },
      },
    },
    httpFilters: [filter('envoy.filters.http.router', RouterSchema, {})],
  });
  const listener = resource(
    'models',
    ListenerSchema,
    { name: 'models', apiListener: { apiListener: manager } },
    ['routes'],
  );
  const routes = resource('routes', RouteConfigurationSchema, {
    name: 'routes',
    virtualHosts: [
      {
        name: 'all',
        domains: ['*'],
        routes: [
          {
            match: { pathSpecifier: { case: 'prefix', value: '' } },
            action: {
              case: 'route',
              value: {
                clusterSpecifier: { case: 'cluster', value: pool.id },
                hashPolicy: [{ policySpecifier: { case: 'header', value: { headerName: 'x-wardrop-key' } } }],
              },
            },
          },
        ],
      },
    ],
  });
  const endpoints = resource(pool.id, ClusterLoadAssignmentSchema, {
    clusterName: pool.id,
    endpoints: localities,
  });
  const native = { steering: 'round-robin', retryBudgetInterval: true } as const;
  const cluster = steering === 'round-robin' ? clusterOf(pool, native) : ringHashCluster();
  return new Map([
    [CLUSTER_TYPE, createCollection([cluster])],
    [ENDPOINTS_TYPE, createCollection([endpoints])],
    [LISTENER_TYPE, createCollection([listener])],
    [ROUTE_TYPE, createCollection([routes])],
  ]);
}

/** Plainer than ours: this client reads every size of a ring as text, and then rejects it for not being a number. */
function ringHashCluster() {
  const policy = extension('ring_hash', RingHashSchema, { hashFunction: RingHash_HashFunction.XX_HASH });
  return resource(
    pool.id,
    ClusterSchema,
    {
      name: pool.id,
      clusterDiscoveryType: { case: 'type', value: Cluster_DiscoveryType.EDS },
      edsClusterConfig: {
        edsConfig: {
          resourceApiVersion: ApiVersion.V3,
          configSourceSpecifier: { case: 'ads', value: {} },
        },
      },
      loadBalancingPolicy: { policies: [{ typedExtensionConfig: policy }] },
    },
    [pool.id],
  );
}

/** A gRPC server that answers every call with its own name. */
async function backend(name: string) {
  const server = new grpc.Server();
  const method = {
    path: '/test.Echo/Echo',
    requestStream: false,
    responseStream: false,
    ...codec,
  } as const;
  server.addService({ Echo: method }, {
    Echo: (_call: unknown, done: grpc.sendUnaryData<string>) => done(null, name),
  } as grpc.UntypedServiceImplementation);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { server, address: `127.0.0.1:${port}` };
}

const codec = {
  requestSerialize: (text: string) => Buffer.from(text),
  requestDeserialize: (bytes: Buffer) => bytes.toString(),
  responseSerialize: (text: string) => Buffer.from(text),
  responseDeserialize: (bytes: Buffer) => bytes.toString(),
};

describe("gRPC's own xDS client", () => {
  let server: XdsServer;
  let client: grpc.Client;
  let one: Awaited<ReturnType<typeof backend>>;
  let two: Awaited<ReturnType<typeof backend>>;

  const publish = (steering: 'round-robin' | 'ring-hash', localities: Locality[]) => {
    const view = viewOf(steering, localities);
    server.setResources('grpc', { viewOf: () => view });
  };
  const call = (key: string) =>
    new Promise<string>((resolve, reject) => {
      const metadata = new grpc.Metadata();
      metadata.set('x-wardrop-key', key);
      client.makeUnaryRequest(
        '/test.Echo/Echo',
        codec.requestSerialize,
        codec.responseDeserialize,
        'name?',
        metadata,
        { deadline: Date.now() + 10_000 },
        (error, value) => (error === null ? resolve(value!) : reject(error)),
      );
    });
  const servers = async (count: number) => {
    const found = new Set<string>();
    for (let i = 0; i < count; i++) found.add(await call(`key ${i}`));
    return [...found].sort();
  };
  const typeOf = (type: string) => server.nodes()[0]!.types[type]!;

  beforeAll(async () => {
    one = await backend('one');
    two = await backend('two');
    server = new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: () => 'grpc',
      log: silent,
    });
    const address = await server.start();
    process.env.GRPC_XDS_BOOTSTRAP_CONFIG = JSON.stringify({
      node: { id: 'grpc-1', locality: {} },
      xds_servers: [
        { server_uri: address, channel_creds: [{ type: 'insecure' }], server_features: ['xds_v3'] },
      ],
    });
    xds.register();
    publish('round-robin', [localityAt(one.address), localityAt(two.address)]);
    client = new grpc.Client('xds:///models', grpc.credentials.createInsecure());
  });

  afterAll(async () => {
    client.close();
    await server.stop();
    one.server.forceShutdown();
    two.server.forceShutdown();
  });

  it('takes listener, routes, cluster and endpoints by name, and reaches every host', async () => {
    await eventually('both hosts to be reached', async () => (await servers(10)).join() === 'one,two');
    const [node] = server.nodes();
    expect(node).toMatchObject({ nodeId: 'grpc-1', protocol: 'sotw' });
    const types = Object.entries(node!.types).map(([type, { status, subscribed }]) => [
      type,
      status,
      subscribed,
    ]);
    expect(Object.fromEntries(types.map(([type, ...rest]) => [type, rest]))).toEqual({
      [LISTENER_TYPE]: ['synced', ['models']],
      [ROUTE_TYPE]: ['synced', ['routes']],
      [CLUSTER_TYPE]: ['synced', ['m1']],
      [ENDPOINTS_TYPE]: ['synced', ['m1']],
    });
  });

  it('follows new endpoints', async () => {
    publish('round-robin', [localityAt(two.address)]);
    await eventually('the other host alone', async () => (await servers(5)).join() === 'two');
    expect(typeOf(ENDPOINTS_TYPE).rejections).toBe(0);
  });

  it('keeps what it has when it rejects an update, is not sent that again, and takes the next one', async () => {
    // A priority without the ones before it is an error to gRPC.
    publish('round-robin', [localityAt(one.address, 3)]);
    await eventually('the rejection', () => typeOf(ENDPOINTS_TYPE).status === 'rejected');
    const { sent, rejections } = typeOf(ENDPOINTS_TYPE);
    expect(await servers(5)).toEqual(['two']);
    expect(typeOf(ENDPOINTS_TYPE)).toMatchObject({ sent, rejections });
    expect(rejections).toBe(1);
    publish('round-robin', [localityAt(one.address)]);
    await eventually('the next update', async () => (await servers(5)).join() === 'one');
    expect(typeOf(ENDPOINTS_TYPE)).toMatchObject({ status: 'synced', rejections: 1 });
  });

  it('changes to a ring hash, by which a key stays with its host', async () => {
    publish('ring-hash', [localityAt(one.address), localityAt(two.address)]);
    await eventually('keys to stay with their hosts', async () => {
      for (let i = 0; i < 10; i++) {
        const first = await call(`key ${i}`);
        for (let again = 0; again < 5; again++) if ((await call(`key ${i}`)) !== first) return false;
      }
      return true;
    });
    expect(await servers(20)).toEqual(['one', 'two']);
    expect(typeOf(CLUSTER_TYPE)).toMatchObject({ status: 'synced', rejections: 0 });
  });
});
