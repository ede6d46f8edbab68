import { fromBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.js';
import { createResource } from '../protocol/resource.js';
import { encodeDeltaResponse, encodeSotwResponse } from './codec.js';

// An `Any` with type `t` and no value.
const resource = (name: string) => createResource(name, Buffer.from([0x0a, 1, 0x74]));
const a = resource('a');
const b = resource('b');
const response = { version: 'v', resources: [a, b], removed: ['c'], typeUrl: 't', nonce: '1-1' };

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
