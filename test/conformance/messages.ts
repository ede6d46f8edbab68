import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { AnySchema } from '@bufbuild/protobuf/wkt';
import {
  DeltaDiscoveryRequestSchema,
  DeltaDiscoveryResponseSchema,
  DiscoveryRequestSchema,
  DiscoveryResponseSchema,
} from '../../xds-server/gen/envoy/service/discovery/v3/discovery_pb.js';
import type { NodeIdentity } from '../../xds-server/xds/protocol/node.js';
import {
  type Collection,
  createCollection,
  createResource,
  type View,
} from '../../xds-server/xds/protocol/resource.js';
import type { DeltaRequest, SotwRequest } from '../../xds-server/xds/protocol/session.js';
import {
  CLUSTER_TYPE,
  ENDPOINTS_TYPE,
  EXTENSION_TYPE,
  LISTENER_TYPE,
  ROUTE_TYPE,
  RUNTIME_TYPE,
} from '../../xds-server/xds/protocol/type-url.js';

/** Short names of types in scenarios. */
export const types = {
  cds: CLUSTER_TYPE,
  eds: ENDPOINTS_TYPE,
  ecds: EXTENSION_TYPE,
  lds: LISTENER_TYPE,
  rds: ROUTE_TYPE,
  rtds: RUNTIME_TYPE,
  unknown: 'type.googleapis.com/nobody.knows.This',
} as const;
export type TypeName = keyof typeof types;

/** Resources by type and name; the value stands for the content. */
export type State = Readonly<Partial<Record<TypeName, Readonly<Record<string, string>>>>>;

/** A response as a scenario sees it. */
export interface Received {
  readonly type: string;
  readonly version: string;
  readonly nonce: string;
  readonly resources: Readonly<Record<string, string>>;
  /** Versions of single resources; only the delta protocol tells them. */
  readonly versions: Readonly<Record<string, string>>;
  readonly removed: readonly string[];
}

/**
 * A type that answers at once, whatever else is going on. Streams keep their order, so that an answer of this type
 * proves that nothing was sent before it: silence without waiting.
 */
export const BARRIER_TYPE = 'type.googleapis.com/test.Barrier';
export const BARRIERS = 100;

export function viewOf(state: State): View {
  const view = new Map<string, Collection>(
    Object.entries(state).map(([type, resources]) => [
      types[type as TypeName],
      createCollection(Object.entries(resources).map(([name, content]) => testResource(type, name, content))),
    ]),
  );
  for (const type of Object.values(types)) {
    if (type !== types.unknown && !view.has(type)) view.set(type, createCollection([]));
  }
  const barriers = Array.from({ length: BARRIERS }, (_, i) => testResource('barrier', `b${i}`, ''));
  return view.set(BARRIER_TYPE, createCollection(barriers));
}

/** A cluster refers to the endpoints of the same name, a listener to the route of the same name. */
function testResource(type: string, name: string, content: string) {
  const any = create(AnySchema, { typeUrl: type, value: Buffer.from(`${name}=${content}`) });
  return createResource(name, toBinary(AnySchema, any), ['cds', 'lds'].includes(type) ? [name] : []);
}

export function contentOf(anys: readonly { readonly value: Uint8Array }[]): Record<string, string> {
  const pairs = anys.map(({ value }) => Buffer.from(value).toString().split('=') as [string, string]);
  const content = Object.fromEntries(pairs);
  if (Object.keys(content).length !== pairs.length) throw new Error('a name came twice in one response');
  return content;
}

export const shortName = (typeUrl: string) =>
  Object.entries(types).find(([, url]) => url === typeUrl)?.[0] ?? typeUrl;

function nodeMessage(node: NodeIdentity | undefined) {
  if (node === undefined) return {};
  return { node: { id: node.id, cluster: node.cluster, metadata: node.metadata } };
}

export function encodeSotw(request: SotwRequest): Buffer {
  const message = create(DiscoveryRequestSchema, {
    ...nodeMessage(request.node),
    typeUrl: request.typeUrl,
    versionInfo: request.versionInfo,
    resourceNames: [...request.resourceNames],
    responseNonce: request.responseNonce,
    ...(request.error !== undefined && { errorDetail: { code: 3, message: request.error } }),
  });
  return Buffer.from(toBinary(DiscoveryRequestSchema, message));
}

export function decodeSotw(bytes: Uint8Array): Received {
  const message = fromBinary(DiscoveryResponseSchema, bytes);
  return {
    type: shortName(message.typeUrl),
    version: message.versionInfo,
    nonce: message.nonce,
    resources: contentOf(message.resources),
    versions: {},
    removed: [],
  };
}

export function encodeDelta(request: DeltaRequest): Buffer {
  const message = create(DeltaDiscoveryRequestSchema, {
    ...nodeMessage(request.node),
    typeUrl: request.typeUrl,
    resourceNamesSubscribe: [...request.subscribe],
    resourceNamesUnsubscribe: [...request.unsubscribe],
    initialResourceVersions: { ...request.initialVersions },
    responseNonce: request.responseNonce,
    ...(request.error !== undefined && { errorDetail: { code: 3, message: request.error } }),
  });
  return Buffer.from(toBinary(DeltaDiscoveryRequestSchema, message));
}

export function decodeDelta(bytes: Uint8Array): Received {
  const message = fromBinary(DeltaDiscoveryResponseSchema, bytes);
  return {
    type: shortName(message.typeUrl),
    version: message.systemVersionInfo,
    nonce: message.nonce,
    resources: contentOf(message.resources.map((resource) => resource.resource!)),
    versions: Object.fromEntries(message.resources.map(({ name, version }) => [name, version])),
    removed: message.removedResources,
  };
}
