import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema, anyUnpack } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import type { Upstream } from '../../fleet/upstream.js';
import { ClusterSchema } from '../../gen/envoy/config/cluster/v3/cluster_pb.js';
import { HeaderMutationSchema } from '../../gen/envoy/extensions/filters/http/header_mutation/v3/header_mutation_pb.js';
import { UpstreamTlsContextSchema } from '../../gen/envoy/extensions/transport_sockets/tls/v3/tls_pb.js';
import { HttpProtocolOptionsSchema } from '../../gen/envoy/extensions/upstreams/http/v3/http_protocol_options_pb.js';
import { clusterOf, HTTP_PROTOCOL_OPTIONS } from './clusters.js';

const pool = { id: 'm', model: 'm', needs: [], engineIds: ['a'] };

function built(upstream?: Upstream) {
  const { any } = clusterOf(pool, {
    steering: 'override-host',
    retryBudgetInterval: true,
    ...(upstream && { upstream }),
  });
  const cluster = anyUnpack(fromBinary(AnySchema, any), ClusterSchema)!;
  const options = anyUnpack(
    cluster.typedExtensionProtocolOptions[HTTP_PROTOCOL_OPTIONS]!,
    HttpProtocolOptionsSchema,
  )!;
  const mutation = options.httpFilters[0]!.configType;
  const { mutations } = anyUnpack(mutation.value as never, HeaderMutationSchema)!;
  return { cluster, requestMutations: mutations!.requestMutations };
}

it('speaks plain HTTP and adds no header unless told to', () => {
  const { cluster, requestMutations } = built();
  expect(cluster.transportSocket).toBeUndefined();
  expect(requestMutations.every(({ action }) => action.case === 'remove')).toBe(true);
});

it('lets weights and readiness be in force at once, however soon after others they come', () => {
  expect(built().cluster.commonLbConfig!.updateMergeWindow).toMatchObject({ seconds: 0n, nanos: 0 });
});

it('asks over TLS for the name that the certificate must be for', () => {
  const socket = built({ tls: { sni: 'engines.example', ca: 'PEM' } }).cluster.transportSocket!;
  const { sni, commonTlsContext } = anyUnpack(socket.configType.value as never, UpstreamTlsContextSchema)!;
  expect(sni).toBe('engines.example');
  const context = commonTlsContext!.validationContextType.value as {
    trustedCa: { specifier: object };
    matchTypedSubjectAltNames: { matcher: { matchPattern: object } }[];
  };
  expect(context.trustedCa.specifier).toEqual({ case: 'inlineString', value: 'PEM' });
  expect(context.matchTypedSubjectAltNames[0]!.matcher.matchPattern).toEqual({
    case: 'exact',
    value: 'engines.example',
  });
});

it('shows its certificate to engines that ask for one', () => {
  const client = { cert: 'CHAIN', key: 'KEY' };
  const socket = built({ tls: { sni: 'engines.example', client } }).cluster.transportSocket!;
  const { commonTlsContext } = anyUnpack(socket.configType.value as never, UpstreamTlsContextSchema)!;
  const [{ certificateChain, privateKey }] = commonTlsContext!.tlsCertificates as never as [
    Record<'certificateChain' | 'privateKey', { specifier: object }>,
  ];
  expect(certificateChain.specifier).toEqual({ case: 'inlineString', value: 'CHAIN' });
  expect(privateKey.specifier).toEqual({ case: 'inlineString', value: 'KEY' });
});

it('sets the header in place of what clients send, percent signs being taken as they are', () => {
  const { requestMutations } = built({ auth: { header: 'authorization', value: 'Bearer 100%' } });
  const { header, appendAction } = requestMutations.at(-1)!.action.value as {
    header: { key: string; value: string };
    appendAction: number;
  };
  expect(header).toMatchObject({ key: 'authorization', value: 'Bearer 100%%' });
  expect(appendAction).toBe(2);
});
