import { fromJson } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { BootstrapSchema } from '../gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { type BootstrapInput, buildBootstrap } from './bootstrap.js';
import { registry } from './registry.js';

const frontend = { id: 'west', region: 'westeurope', listen: '0.0.0.0:8080' };
const input: BootstrapInput = {
  frontend,
  nodeId: 'west-1',
  xds: { host: '10.0.0.1', port: 18000 },
  sync: { host: '10.0.0.1', port: 18001 },
};

const clusterOf = (bootstrap: object, name: string) =>
  (bootstrap as { static_resources: { clusters: { name: string }[] } }).static_resources.clusters.find(
    (cluster) => cluster.name === name,
  )!;

describe('a bootstrap', () => {
  it('reads back as the message that Envoy knows, field by field', () => {
    const tls = { caFile: '/ca.pem', client: { certificateFile: '/c.pem', keyFile: '/k.pem' } };
    const full = { ...input, xds: { ...input.xds, tls, token: 't' }, sync: { ...input.sync, tls } };
    expect(() => fromJson(BootstrapSchema, buildBootstrap(full), { registry })).not.toThrow();
  });

  it('says who the Envoy is, and where it listens when that differs from its frontend', () => {
    expect(buildBootstrap(input).node).toEqual({
      id: 'west-1',
      cluster: 'west',
      locality: { region: 'westeurope' },
      metadata: { wardrop: { frontend: 'west' } },
    });
    expect(buildBootstrap({ ...input, listen: '127.0.0.1:81' }).node).toMatchObject({
      metadata: { wardrop: { frontend: 'west', listen: '127.0.0.1:81' } },
    });
  });

  it('keeps the admin pages on loopback unless told otherwise', () => {
    expect(buildBootstrap(input).admin).toEqual({
      address: { socket_address: { address: '127.0.0.1', port_value: 9901 } },
    });
  });

  it('resolves a host name and takes an address as it is', () => {
    const named = buildBootstrap({ ...input, xds: { host: 'wardrop.internal', port: 18000 } });
    expect(clusterOf(named, 'wardrop-xds')).toMatchObject({ type: 'STRICT_DNS' });
    const v6 = buildBootstrap({ ...input, xds: { host: '::1', port: 18000 } });
    const endpoint = { address: { socket_address: { address: '::1', port_value: 18000 } } };
    expect(clusterOf(v6, 'wardrop-xds')).toMatchObject({
      load_assignment: { endpoints: [{ lb_endpoints: [{ endpoint }] }] },
    });
    expect(clusterOf(v6, 'wardrop-xds')).not.toHaveProperty('type', 'STRICT_DNS');
  });

  it('names a token literally, whatever signs it has', () => {
    const bootstrap = buildBootstrap({ ...input, xds: { ...input.xds, token: '50%A%' } });
    expect(JSON.stringify(clusterOf(bootstrap, 'wardrop-xds'))).toContain('"value":"Bearer 50%%A%%"');
  });

  it('of several control servers names all in their order, and asks each whether it is ready', () => {
    const at = (port: number) => ({ host: 'two.internal', port });
    const tls = { caFile: '/ca.pem' };
    const bootstrap = buildBootstrap({
      ...input,
      sync: { ...input.sync, tls },
      standbys: [{ xds: at(7), sync: at(8) }],
    });
    expect(() => fromJson(BootstrapSchema, bootstrap, { registry })).not.toThrow();
    for (const [name, port] of [
      ['wardrop-xds', 7],
      ['wardrop-sync', 8],
    ] as const) {
      const cluster = clusterOf(bootstrap, name);
      expect(cluster).toMatchObject({
        type: 'STRICT_DNS',
        health_checks: [{ http_health_check: { path: '/ready' } }],
        load_assignment: {
          endpoints: [
            { lb_endpoints: [{ endpoint: { health_check_config: { port_value: 18001 } } }] },
            {
              priority: 1,
              lb_endpoints: [
                {
                  endpoint: {
                    address: { socket_address: { address: 'two.internal', port_value: port } },
                    health_check_config: { port_value: 8 },
                  },
                },
              ],
            },
          ],
        },
      });
    }
    const names = JSON.stringify(clusterOf(bootstrap, 'wardrop-sync')).match(/"exact":"[^"]*"/g);
    expect(names).toEqual(['"exact":"10.0.0.1"', '"exact":"two.internal"']);
    expect(clusterOf(buildBootstrap(input), 'wardrop-sync')).not.toHaveProperty('health_checks');
  });

  it('lets Envoy demand the name or the address that it was told to reach', () => {
    const matchers = (host: string, serverName?: string) => {
      const tls = { caFile: '/ca.pem', ...(serverName !== undefined && { serverName }) };
      const bootstrap = buildBootstrap({ ...input, sync: { host, port: 1, tls } });
      const { transport_socket: socket } = clusterOf(bootstrap, 'wardrop-sync') as unknown as {
        transport_socket: { typed_config: { sni?: string; common_tls_context: object } };
      };
      return socket.typed_config;
    };
    const demand = (type: string, exact: string) => ({
      common_tls_context: {
        validation_context: { match_typed_subject_alt_names: [{ san_type: type, matcher: { exact } }] },
      },
    });
    expect(matchers('wardrop.internal')).toMatchObject({
      sni: 'wardrop.internal',
      ...demand('DNS', 'wardrop.internal'),
    });
    expect(matchers('10.0.0.1')).toMatchObject(demand('IP_ADDRESS', '10.0.0.1'));
    expect(matchers('10.0.0.1')).not.toHaveProperty('sni');
    expect(matchers('10.0.0.1', 'wardrop')).toMatchObject({ sni: 'wardrop', ...demand('DNS', 'wardrop') });
  });
});
