import { fromBinary } from '@bufbuild/protobuf';
import { type Any, anyUnpack, StringValueSchema } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { decodeSnapshot } from '../../../wire/snapshot-reader.js';
import type { SnapshotView } from '../../../wire/snapshot-view.js';
import { loadConfig } from '../../config/load.js';
import { WasmSchema } from '../../gen/envoy/extensions/filters/http/wasm/v3/wasm_pb.js';
import { HttpConnectionManagerSchema } from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import { staticStart } from './static-start.js';

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'network: {rttMs: {west: {a: 1, b: 1}}}',
    'frontends: [{id: west, region: r, listen: "0.0.0.0:80"}]',
    'engines:',
    '- {id: a, region: ra, models: [m], endpoints: ["10.0.0.1:80"]}',
    '- {id: b, region: rb, models: [m], endpoints: ["10.0.0.2:80"]}',
  ].join('\n'),
);
const snapshot: SnapshotView = {
  version: 1_700_000_000_000,
  planId: '0123456789abcdef',
  issuedAtMs: 1_700_000_000_000,
  frontendId: 'west',
  salt: 'pepper',
  models: [{ name: 'm', pool: 0 }],
  pools: [
    {
      id: 'm',
      cluster: 'm',
      engines: [0, 1],
      segments: [
        { start: 0, owner: 1, backup: 0 },
        { start: 2 ** 30, owner: 0, backup: 1 },
        { start: 3 * 2 ** 30, owner: 1, backup: 0 },
      ],
      retryRatio: 0.1,
      shedFraction: 0,
    },
  ],
  engines: [
    { id: 'a', replicas: [{ address: '10.9.0.1:80', ready: true }] },
    { id: 'b', replicas: [{ address: '10.9.0.2:80', ready: false }] },
  ],
};
const start = (changes: Partial<SnapshotView> = {}, listen?: string) =>
  staticStart({
    config,
    snapshot: { ...snapshot, ...changes },
    wasmModule: new Uint8Array([0]),
    envoyVersion: '1.40.0',
    ...(listen === undefined ? {} : { listen }),
  });

/** What the filter is configured with. */
function filterConfig(started: ReturnType<typeof start>): string {
  const [filter] = started.listeners[0]!.filterChains[0]!.filters;
  const manager = anyUnpack(filter!.configType.value as Any, HttpConnectionManagerSchema)!;
  expect(manager.routeSpecifier.case).toBe('routeConfig');
  const wasm = anyUnpack(manager.httpFilters[0]!.configType.value as Any, WasmSchema)!;
  return fromBinary(StringValueSchema, wasm.config!.configuration!.value).value;
}

describe('a static start', () => {
  it('has the replicas, the readiness and the weights of the snapshot, in clusters of its own', () => {
    const [cluster, ...others] = start().clusters;
    expect(others).toEqual([]);
    expect(cluster).toMatchObject({ name: 'static/m', clusterDiscoveryType: { case: 'type' } });
    expect(cluster).not.toHaveProperty('edsClusterConfig');
    const hosts = cluster!.loadAssignment!.endpoints.map(({ locality, lbEndpoints }) => [
      locality!.subZone,
      lbEndpoints[0]!.healthStatus,
      lbEndpoints[0]!.loadBalancingWeight,
    ]);
    expect(hosts).toEqual([
      ['a', 1, 500_000_000],
      ['b', 2, 500_000_000],
    ]);
  });

  it('gives the filter the snapshot, older than any of a control server, for these clusters', () => {
    const [, encoded] = /^snapshot=(.*)$/m.exec(filterConfig(start()))!;
    expect(decodeSnapshot(Buffer.from(encoded!, 'base64'))).toEqual({
      ...snapshot,
      version: 1,
      pools: [{ ...snapshot.pools[0], cluster: 'static/m' }],
    });
  });

  it('listens where it is told, else where its frontend does', () => {
    const address = (started: ReturnType<typeof start>) => started.listeners[0]!.address!.address.value;
    expect(address(start())).toMatchObject({ address: '0.0.0.0' });
    expect(address(start({}, '127.0.0.1:81'))).toMatchObject({ address: '127.0.0.1' });
  });

  it('is refused with an engine that the configuration does not have', () => {
    const engines = [...snapshot.engines.slice(0, 1), { id: 'c', replicas: [] }];
    expect(() => start({ engines })).toThrow('an engine "c" that the configuration lacks');
  });
});
