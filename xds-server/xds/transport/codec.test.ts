import { create, fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { NodeSchema } from '../../gen/envoy/config/core/v3/base_pb.js';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.js';
import { createResource } from '../protocol/resource.js';
import { encodeDeltaResponse, encodeSotwResponse, identityOf } from './codec.js';

// An `Any` with type `t` and no value.
const resource = (name: string) => createResource(name, Buffer.from([0x0a, 1, 0x74]));
const a = resource('a');
const b = resource('b');
const response = { version: 'v', resources: [a, b], removed: ['c'], typeUrl: 't', nonce: '1-1' };

it('names in which a client says who it is are cut before they are shown or logged, and metadata is not', () => {
  const long = 'n'.repeat(100_000);
  const node = create(NodeSchema, {
    id: long,
    cluster: 'c'.repeat(256),
    locality: { region: long },
    userAgentVersionType: { case: 'userAgentVersion', value: long },
    metadata: { key: long },
  });
  const { id, cluster, region, userAgentVersion, metadata } = identityOf(node);
  const shown = `${'n'.repeat(255)}…`;
  expect([id, region, userAgentVersion]).toEqual([shown, shown, shown]);
  expect([cluster, metadata]).toEqual(['c'.repeat(256), { key: long }]);
});

describe('a response', () => {
  it('reads back as the message that clients know', () => {
    const sotw = fromBinary(DiscoveryResponseSchema, encodeSotwResponse({ ...response, removed: [] }));
    expect(sotw).toMatchObject({ versionInfo: 'v', typeUrl: 't', nonce: '1-1' });
    expect(sotw.resources.map(({ typeUrl }) => typeUrl)).toEqual(['t', 't']);
    const delta = fromBinary(DeltaDiscoveryResponseSchema, encodeDeltaResponse(response));
    expect(delta).toMatchObject({ systemVersionInfo: 'v', removedResources: ['c'], nonce: '1-1' });
    expect(delta.resources.map(({ name, version }) => [name, version])).toEqual([
      ['a', a.version],
      ['b', b.version],
    ]);
  });

  it('is encoded once for all streams that are sent the same, and anew for whatever differs', () => {
    const first = encodeDeltaResponse(response);
    expect(encodeDeltaResponse({ ...response, resources: [a, b] })).toBe(first);
    for (const change of [
      { nonce: '1-2' },
      { version: 'w' },
      { typeUrl: 'u' },
      { resources: [a] },
      { resources: [b, a] },
      { removed: [] },
    ]) {
      encodeDeltaResponse(response);
      const other = encodeDeltaResponse({ ...response, ...change });
      expect(other.equals(first)).toBe(false);
    }
  });
});
