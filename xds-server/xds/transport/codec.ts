import { fromBinary } from '@bufbuild/protobuf';
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import type { Node } from '../../gen/envoy/config/core/v3/base_pb.js';
import {
  DeltaDiscoveryRequestSchema,
  DiscoveryRequestSchema,
} from '../../gen/envoy/service/discovery/v3/discovery_pb.js';
import type { NodeIdentity } from '../protocol/node.js';
import type { Resource } from '../protocol/resource.js';
import type { DeltaRequest, Response, SotwRequest } from '../protocol/session.js';

export function decodeSotwRequest(bytes: Uint8Array): SotwRequest {
  const request = fromBinary(DiscoveryRequestSchema, bytes);
  return {
    ...common(request),
    versionInfo: request.versionInfo,
    resourceNames: request.resourceNames,
  };
}

export function decodeDeltaRequest(bytes: Uint8Array): DeltaRequest {
  const request = fromBinary(DeltaDiscoveryRequestSchema, bytes);
  return {
    ...common(request),
    subscribe: request.resourceNamesSubscribe,
    unsubscribe: request.resourceNamesUnsubscribe,
    initialVersions: request.initialResourceVersions,
  };
}

/** Enough of a rejection's text to find the fault; a client may quote the whole resource. */
const REASON_LENGTH = 10_000;

function common(request: {
  typeUrl: string;
  responseNonce: string;
  node?: Node | undefined;
  errorDetail?: { message: string } | undefined;
}) {
  return {
    typeUrl: request.typeUrl,
    responseNonce: request.responseNonce,
    ...(request.node !== undefined && { node: identityOf(request.node) }),
    ...(request.errorDetail !== undefined && { error: request.errorDetail.message.slice(0, REASON_LENGTH) }),
  };
}

/** No filter has a longer name, and nothing that is shown or logged is to be longer. */
const LONGEST_NAME = 256;

function cut(name: string): string {
  return name.length <= LONGEST_NAME ? name : `${name.slice(0, LONGEST_NAME - 1)}…`;
}

export function identityOf(node: Node): NodeIdentity {
  const agent = node.userAgentVersionType;
  const build = agent.case === 'userAgentBuildVersion' ? agent.value.version : undefined;
  return {
    id: cut(node.id),
    cluster: cut(node.cluster),
    region: cut(node.locality?.region ?? ''),
    metadata: node.metadata ?? {},
    userAgent: cut(node.userAgentName),
    userAgentVersion:
      build !== undefined
        ? `${build.majorNumber}.${build.minorNumber}.${build.patch}`
        : agent.case === 'userAgentVersion'
          ? cut(agent.value)
          : '',
    extensions: new Set(node.extensions.map(({ name }) => name)),
  };
}

// Responses are put together from bytes: a resource is encoded and framed once, whoever receives it.
const sotwFrames = new WeakMap<Resource, Uint8Array>();
const deltaFrames = new WeakMap<Resource, Uint8Array>();

/** A `DiscoveryResponse`. */
export const encodeSotwResponse = oncePerRun((response) =>
  assemble(
    response,
    response.resources.map((resource) =>
      framed(sotwFrames, resource, (writer) => writer.bytes(resource.any)),
    ),
  ),
);

/** A `DeltaDiscoveryResponse`. */
export const encodeDeltaResponse = oncePerRun((response) =>
  assemble(
    response,
    response.resources.map((resource) =>
      framed(deltaFrames, resource, (writer) =>
        writer
          .fork()
          .tag(1, WireType.LengthDelimited)
          .string(resource.version)
          .tag(2, WireType.LengthDelimited)
          .bytes(resource.any)
          .tag(3, WireType.LengthDelimited)
          .string(resource.name)
          .join(),
      ),
    ),
  ),
);

/** Encodes equal responses that follow each other once: a publication sends the same to one stream after the other. */
function oncePerRun(encode: (response: Response) => Buffer): (response: Response) => Buffer {
  let last: { readonly response: Response; readonly bytes: Buffer } | undefined;
  return (response) => {
    if (last === undefined || !isSame(last.response, response)) last = { response, bytes: encode(response) };
    return last.bytes;
  };
}

function isSame(a: Response, b: Response): boolean {
  return (
    a.nonce === b.nonce &&
    a.typeUrl === b.typeUrl &&
    a.version === b.version &&
    isSameList(a.resources, b.resources) &&
    isSameList(a.removed, b.removed)
  );
}

function isSameList<T>(a: readonly T[], b: readonly T[]): boolean {
  return a.length === b.length && a.every((item, index) => item === b[index]);
}

/** Both messages number their fields alike; only delta has 6 (`removed_resources`). */
function assemble(response: Response, frames: readonly Uint8Array[]): Buffer {
  const head = new BinaryWriter().tag(1, WireType.LengthDelimited).string(response.version);
  const tail = new BinaryWriter()
    .tag(4, WireType.LengthDelimited)
    .string(response.typeUrl)
    .tag(5, WireType.LengthDelimited)
    .string(response.nonce);
  for (const name of response.removed) tail.tag(6, WireType.LengthDelimited).string(name);
  return Buffer.concat([head.finish(), ...frames, tail.finish()]);
}

/** The resource as an entry of field 2 (`resources`) of either response. */
function framed(
  frames: WeakMap<Resource, Uint8Array>,
  resource: Resource,
  write: (writer: BinaryWriter) => BinaryWriter,
): Uint8Array {
  let frame = frames.get(resource);
  if (frame === undefined) {
    frame = write(new BinaryWriter().tag(2, WireType.LengthDelimited)).finish();
    frames.set(resource, frame);
  }
  return frame;
}
