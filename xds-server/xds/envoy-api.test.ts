import { readFileSync } from 'node:fs';
import { create, type DescMessage, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CircuitBreakers_Thresholds_RetryBudgetSchema } from '../gen/envoy/config/cluster/v3/circuit_breaker_pb.js';
import { VirtualHostSchema } from '../gen/envoy/config/route/v3/route_components_pb.js';
import {
  OverrideHost_OverrideHostSourceSchema,
  OverrideHostSchema,
} from '../gen/envoy/extensions/load_balancing_policies/override_host/v3/override_host_pb.js';
import {
  FailurePolicy,
  PluginConfigSchema,
  ReloadConfigSchema,
} from '../gen/envoy/extensions/wasm/v3/wasm_pb.js';
import {
  DeltaDiscoveryResponseSchema,
  DiscoveryResponseSchema,
  ResourceErrorSchema,
} from '../gen/envoy/service/discovery/v3/discovery_pb.js';

const covered = new Set<string>();

/** One row of scripts/envoy-api.json: a message with only that field set, and its bytes written out by hand. */
function row<Desc extends DescMessage>(schema: Desc, init: MessageInitShape<Desc>, hex: string) {
  for (const name of Object.keys(init)) {
    covered.add(`${schema.typeName}.${schema.fields.find((field) => field.localName === name)?.name}`);
  }
  it(`${schema.typeName} ${Object.keys(init).join()} is ${hex} on the wire`, () => {
    const bytes = toBinary(schema, create(schema, init));
    expect(Buffer.from(bytes).toString('hex')).toBe(hex);
    expect(fromBinary(schema, bytes)).toEqual(create(schema, init));
  });
}

describe('fields of Envoy 1.40 that are added to the npm proto tree', () => {
  row(VirtualHostSchema, { requestBodyBufferLimit: 1n }, 'ca01020801');
  row(PluginConfigSchema, { failurePolicy: FailurePolicy.FAIL_RELOAD }, '3801');
  row(PluginConfigSchema, { reloadConfig: {} }, '4200');
  row(PluginConfigSchema, { allowOnHeadersStopIteration: true }, '4a020801');
  row(ReloadConfigSchema, { backoff: {} }, '0a00');
  row(OverrideHost_OverrideHostSourceSchema, { header: 'h' }, '0a0168');
  row(OverrideHost_OverrideHostSourceSchema, { metadata: { key: 'k' } }, '12030a016b');
  row(OverrideHostSchema, { overrideHostSources: [{ header: 'h' }] }, '0a030a0168');
  row(OverrideHostSchema, { selectedHostKey: { key: 'k' } }, '12030a016b');
  row(OverrideHostSchema, { fallbackPolicy: {} }, '1a00');
  row(ResourceErrorSchema, { resourceName: { name: 'n' } }, '0a030a016e');
  row(ResourceErrorSchema, { errorDetail: { code: 5 } }, '12020805');
  row(DiscoveryResponseSchema, { resourceErrors: [{}] }, '3a00');
  row(DeltaDiscoveryResponseSchema, { resourceErrors: [{}] }, '4a00');
  row(CircuitBreakers_Thresholds_RetryBudgetSchema, { budgetInterval: { seconds: 1n } }, '1a020801');

  it('has a row here for every row of the table', () => {
    const table = JSON.parse(
      readFileSync(new URL('../../scripts/envoy-api.json', import.meta.url), 'utf8'),
    ) as {
      fields: { message: string; field: string }[];
    };
    expect([...covered].sort()).toEqual(table.fields.map((f) => `${f.message}.${f.field}`).sort());
  });
});
