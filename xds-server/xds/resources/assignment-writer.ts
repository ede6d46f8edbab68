import { create, toBinary } from '@bufbuild/protobuf';
import { WireType } from '@bufbuild/protobuf/wire';
import type { Engine } from '../../fleet/fleet.js';
import type { HealthStatus } from '../../gen/envoy/config/core/v3/health_check_pb.js';
import {
  LbEndpointSchema,
  LocalityLbEndpointsSchema,
} from '../../gen/envoy/config/endpoint/v3/endpoint_components_pb.js';
import { ENDPOINTS_TYPE } from '../protocol/type-url.js';
import { envoyAddress } from './address.js';

/** The hosts of one engine, in the order of its endpoints. */
export interface Locality {
  readonly engine: Engine;
  readonly priority: number;
  /** 1..2^32-1, the same for each host. */
  readonly hostWeight: number;
  /** As many as endpoints. */
  readonly health: readonly HealthStatus[];
}

/** What doesn't change from plan to plan: the encoded locality and the encoded `endpoint` field of each host. */
interface Prefixes {
  readonly locality: Uint8Array;
  readonly hosts: readonly Uint8Array[];
}

const prefixesOf = new WeakMap<Engine, Prefixes>();

const tag = (field: number, wireType: WireType) => (field << 3) | wireType;
const ANY_TYPE_URL = tag(1, WireType.LengthDelimited);
const ANY_VALUE = tag(2, WireType.LengthDelimited);
const CLUSTER_NAME = tag(1, WireType.LengthDelimited);
const ENDPOINTS = tag(2, WireType.LengthDelimited);
const LB_ENDPOINTS = tag(2, WireType.LengthDelimited);
const PRIORITY = tag(5, WireType.Varint);
const HEALTH_STATUS = tag(2, WireType.Varint);
const WEIGHT = tag(4, WireType.LengthDelimited);
const UINT32_VALUE = tag(1, WireType.Varint);
const typeUrl = Buffer.from(ENDPOINTS_TYPE);

/**
 * Encodes a `ClusterLoadAssignment` in an `Any`, byte for byte as the general encoder would. Endpoints are by far the
 * most that a control server writes, once per frontend, pool and plan, and only weights and health differ from the
 * time before: the rest is encoded once per engine and copied.
 */
export function encodeAssignment(clusterName: string, localities: readonly Locality[]): Uint8Array {
  const name = Buffer.from(clusterName);
  const sizes = localities.map(localitySize);
  const size = fieldSize(name.length) + sizes.reduce((sum, each) => sum + fieldSize(each), 0);
  const writer = new Writer(fieldSize(typeUrl.length) + fieldSize(size));
  writer.field(ANY_TYPE_URL, typeUrl);
  writer.header(ANY_VALUE, size);
  writer.field(CLUSTER_NAME, name);
  for (const [index, locality] of localities.entries()) {
    writer.header(ENDPOINTS, sizes[index]!);
    writeLocality(writer, locality);
  }
  return writer.bytes;
}

function localitySize({ engine, priority, hostWeight }: Locality): number {
  const { locality, hosts } = prefixes(engine);
  const suffix = suffixSize(hostWeight);
  let size = locality.length + (priority === 0 ? 0 : 1 + varintSize(priority));
  for (const host of hosts) size += fieldSize(host.length + suffix);
  return size;
}

function writeLocality(writer: Writer, { engine, priority, hostWeight, health }: Locality): void {
  const { locality, hosts } = prefixes(engine);
  const suffix = suffixSize(hostWeight);
  const weightSize = 1 + varintSize(hostWeight);
  writer.raw(locality);
  for (const [index, host] of hosts.entries()) {
    writer.header(LB_ENDPOINTS, host.length + suffix);
    writer.raw(host);
    writer.header(HEALTH_STATUS, health[index]!);
    writer.header(WEIGHT, weightSize);
    writer.header(UINT32_VALUE, hostWeight);
  }
  if (priority !== 0) writer.header(PRIORITY, priority);
}

/** Bytes of a host after its endpoint: the health, which is always below 128, and the weight. */
function suffixSize(hostWeight: number): number {
  return 2 + fieldSize(1 + varintSize(hostWeight));
}

function prefixes(engine: Engine): Prefixes {
  let found = prefixesOf.get(engine);
  if (found === undefined) {
    const locality = create(LocalityLbEndpointsSchema, {
      locality: { region: engine.region, subZone: engine.id },
    });
    found = {
      locality: toBinary(LocalityLbEndpointsSchema, locality),
      hosts: engine.endpoints.map((address) =>
        toBinary(
          LbEndpointSchema,
          create(LbEndpointSchema, {
            hostIdentifier: { case: 'endpoint', value: { address: envoyAddress(address) } },
          }),
        ),
      ),
    };
    prefixesOf.set(engine, found);
  }
  return found;
}

/** Bytes of a length-delimited field of this many bytes, for field numbers below 16. */
function fieldSize(length: number): number {
  return 1 + varintSize(length) + length;
}

function varintSize(value: number): number {
  if (value < 0x80) return 1;
  if (value < 0x4000) return 2;
  if (value < 0x20_0000) return 3;
  return value < 0x1000_0000 ? 4 : 5;
}

/** Writes into a buffer whose size is known beforehand. */
class Writer {
  readonly bytes: Buffer;
  #at = 0;

  constructor(size: number) {
    this.bytes = Buffer.allocUnsafe(size);
  }

  raw(bytes: Uint8Array): void {
    this.bytes.set(bytes, this.#at);
    this.#at += bytes.length;
  }

  /** A tag and a number below 2^32: a value, or the length of what follows. */
  header(tagByte: number, value: number): void {
    this.bytes[this.#at++] = tagByte;
    let rest = value;
    while (rest >= 0x80) {
      this.bytes[this.#at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.#at++] = rest;
  }

  field(tagByte: number, bytes: Uint8Array): void {
    this.header(tagByte, bytes.length);
    this.raw(bytes);
  }
}
