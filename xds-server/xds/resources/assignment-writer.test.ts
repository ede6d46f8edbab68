import fc from 'fast-check';
import { expect, it } from 'vitest';
import { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.js';
import { encodeAssignment, type Locality } from './assignment-writer.js';
import { encodeGenerally } from './testing/general-encoder.js';

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');

const address = fc
  .tuple(fc.oneof(fc.ipV4(), fc.constant('[2001:db8::1]')), fc.integer({ min: 1, max: 65_535 }))
  .map(([host, port]) => `${host}:${port}`);
const host = fc.record({
  address,
  health: fc.constantFrom(HealthStatus.HEALTHY, HealthStatus.UNHEALTHY, HealthStatus.DRAINING),
});
// Lengths and weights on both sides of the boundaries of a varint.
const name = fc.oneof(
  fc.string({ minLength: 1 }),
  fc.constantFrom(127, 128, 16_383, 16_384).map((length) => 'x'.repeat(length)),
);
const weight = fc.oneof(
  fc.integer({ min: 1, max: 2 ** 32 - 1 }),
  fc.constantFrom(...[7, 14, 21, 28].flatMap((bits) => [2 ** bits - 1, 2 ** bits]), 2 ** 31, 2 ** 32 - 1),
);
const locality = fc
  .record({
    region: name,
    id: fc.string(),
    priority: fc.constantFrom(0, 1, 127),
    hostWeight: weight,
    hosts: fc.array(host, { maxLength: 30 }),
  })
  .map(({ region, id, priority, hostWeight, hosts }): Locality => {
    const metrics = { kind: 'none', path: '' } as const;
    const endpoints = hosts.map((each) => each.address);
    const engine = { id, region, models: [], labels: {}, profile: '', endpoints, metrics, healthPath: '' };
    return { engine, priority, hostWeight, health: hosts.map(({ health }) => health) };
  });

it('writes the bytes that the general encoder writes', () => {
  fc.assert(
    fc.property(name, fc.array(locality, { maxLength: 5 }), (clusterName, localities) => {
      expect(hex(encodeAssignment(clusterName, localities))).toBe(
        hex(encodeGenerally(clusterName, localities)),
      );
    }),
  );
});

it('follows weights, health and priority of an engine that it has written before', () => {
  fc.assert(
    fc.property(
      locality,
      fc.array(fc.record({ hostWeight: weight, priority: fc.constantFrom(0, 1) })),
      (first, plans) => {
        for (const plan of plans) {
          const next = { ...first, ...plan, health: [...first.health].reverse() };
          expect(hex(encodeAssignment('m', [next]))).toBe(hex(encodeGenerally('m', [next])));
        }
      },
    ),
  );
});
