// Step 6: tells Envoy. Every steering header is either written or removed, whatever the client sent.

import * as L from '../../wire/layout';
import { CLUSTER_HEADER, DESTINATION_HEADER, HASH_HEADER, RETRIES_HEADER } from '../../wire/names';
import { addHeader, getProperty, OK, REQUEST_HEADERS, removeHeader, replaceHeader } from '../abi/host';
import { RESULT, resultLength } from '../abi/memory';
import { begin, lengthFrom, putByte, putBytes, putHex, Text } from '../abi/text';
import { nativeSteering, routeRetries } from '../config';
import { poolRows, textAt, textLength } from '../snapshot/current';
import { steeringNames, steeringSent } from './attributes';
import { Stream } from './streams';

const CLUSTER = new Text(CLUSTER_HEADER);
const DESTINATION = new Text(DESTINATION_HEADER);
const RETRIES = new Text(RETRIES_HEADER);
const HASH = new Text(HASH_HEADER);
const STATUS_CODES = new Text('x-envoy-retriable-status-codes');
const REFUSALS = new Text('401,403,404');
// The first names of CLIENT_STEERING_HEADERS, as bits.
const CLUSTER_BIT: u32 = 1;
const DESTINATION_BIT: u32 = 2;
const RETRIES_BIT: u32 = 4;
const HASH_BIT: u32 = 8;
const STATUS_CODES_BIT: u32 = 1024;
/** Envoy's own, how to retry and how long to wait: a matter between the client and a route that is not ours. */
const ENVOY_BITS: u32 = RETRIES_BIT | 0xff00;

/** Names the cluster, the endpoints to try in turn and the retries. */
export function steer(stream: Stream, pool: u32): void {
  nameCluster(pool);

  const list = begin();
  for (let i: u32 = 0; i < <u32>stream.entries; i++) {
    if (i > 0) putByte(0x2c);
    const address = stream.replica(i).snapshotRow + L.REPLICA_ADDRESS;
    putBytes(textAt(address), textLength(address));
  }
  write(DESTINATION_BIT, DESTINATION, list, lengthFrom(list));

  let written = CLUSTER_BIT | DESTINATION_BIT;
  if (<i32>stream.granted != routeRetries) {
    grant(stream.granted);
    written |= RETRIES_BIT;
  }
  removeSent(steeringSent & ~written);
}

/** Tells Envoy how often it may retry, whatever the route grants. */
function grant(retries: u8): void {
  const digit = begin();
  putByte(0x30 + retries);
  write(RETRIES_BIT, RETRIES, digit, 1);
}

/** Has Envoy retry refusals, too. False where the client has sent such a header, which is still to be removed. */
export function askElsewhere(): bool {
  if (steeringSent & STATUS_CODES_BIT) return false;
  addHeader(REQUEST_HEADERS, STATUS_CODES.at, STATUS_CODES.length, REFUSALS.at, REFUSALS.length);
  return true;
}

/** Of a request that nobody has granted a retry. */
export function forbidRetries(): void {
  if (routeRetries > 0 && !nativeSteering) grant(0);
}

/** Names the cluster and, for a request with a key, what Envoy picks the host by. */
export function steerNatively(pool: u32, hash: u64, keyed: bool): void {
  nameCluster(pool);
  let written = CLUSTER_BIT;
  if (keyed) {
    const digits = begin();
    putHex(hash);
    write(HASH_BIT, HASH, digits, lengthFrom(digits));
    written |= HASH_BIT;
  }
  removeSent(steeringSent & ~written);
}

// @ts-ignore: decorator
@inline
function nameCluster(pool: u32): void {
  const cluster = poolRows + <usize>pool * L.POOL_SIZE + L.POOL_CLUSTER;
  write(CLUSTER_BIT, CLUSTER, textAt(cluster), textLength(cluster));
}

/** Sets a header; one that the client has not sent need not be looked for. */
// @ts-ignore: decorator
@inline
function write(bit: u32, name: Text, value: usize, length: usize): void {
  if (steeringSent & bit) replaceHeader(REQUEST_HEADERS, name.at, name.length, value, length);
  else addHeader(REQUEST_HEADERS, name.at, name.length, value, length);
}

/**
 * Lets a request go where its route leads. A route that asks for a cluster is told the pool's, in which Envoy picks
 * a host; any other does not notice. Without a pool (-1), false when the route leads nowhere by itself.
 */
export function letGo(pool: i32): bool {
  if (pool < 0) {
    if (steeringSent & CLUSTER_BIT || !routeHasCluster()) return false;
  } else {
    nameCluster(pool);
  }
  forbidRetries();
  removeSent(steeringSent & ~(CLUSTER_BIT | ENVOY_BITS));
  return true;
}

const ROUTE_CLUSTER = new Text('xds\0cluster_name');

function routeHasCluster(): bool {
  store<u64>(RESULT, 0);
  return (
    getProperty(ROUTE_CLUSTER.at, ROUTE_CLUSTER.length, RESULT, RESULT + 4) == OK && resultLength() > 0
  );
}

/** Removes those of CLIENT_STEERING_HEADERS whose bits are set. */
// @ts-ignore: decorator
@inline
function removeSent(sent: u32): void {
  while (sent) {
    const name = unchecked(steeringNames[ctz(sent)]);
    removeHeader(REQUEST_HEADERS, name.at, name.length);
    sent &= sent - 1;
  }
}
