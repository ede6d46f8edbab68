import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { WardropError } from '../../errors.js';
import { parseAddress } from '../../fleet/address.js';
import type { Address, Frontend } from '../../fleet/fleet.js';
import type { NodeIdentity } from '../protocol/node.js';

/** Key of our part of an Envoy's node metadata. */
export const METADATA_KEY = 'wardrop';

/** An Envoy of this version (`major.minor.patch`) that listens here, or where its frontend does. */
export function envoyNode(userAgentVersion: string, listen: Address | undefined): NodeIdentity {
  const metadata = listen === undefined ? {} : { [METADATA_KEY]: { listen } };
  return { id: '', cluster: '', region: '', metadata, userAgent: 'envoy', userAgentVersion };
}

/** Where this Envoy listens, when its bootstrap says so (`metadata.wardrop.listen`); checked by `frontendOf`. */
export function listenOf(node: NodeIdentity): Address | undefined {
  return text(node, 'listen');
}

/**
 * The frontend that an Envoy belongs to: `metadata.wardrop.frontend`, else a `node.cluster` that is a frontend's id,
 * else the only frontend in the node's region. Otherwise an error that names the known ones.
 */
export function frontendOf(node: NodeIdentity, frontends: readonly Frontend[]): string | WardropError {
  const listen = text(node, 'listen');
  const parsed = listen === undefined ? undefined : parseAddress(listen);
  if (parsed !== undefined && 'error' in parsed) {
    return new WardropError(
      'WARDROP_NODE_UNKNOWN',
      `node ${JSON.stringify(node.id)}: metadata.wardrop.listen: ${parsed.error}`,
    );
  }
  const named = text(node, 'frontend');
  if (named !== undefined) {
    return frontends.some(({ id }) => id === named)
      ? named
      : unknown(node, `metadata.wardrop.frontend ${JSON.stringify(named.slice(0, 256))}`, frontends);
  }
  const byCluster = frontends.find(({ id }) => id === node.cluster);
  if (byCluster !== undefined) return byCluster.id;
  const inRegion = frontends.filter(({ region }) => region === node.region);
  if (inRegion.length === 1) return inRegion[0]!.id;
  return unknown(
    node,
    `cluster ${JSON.stringify(node.cluster)}, region ${JSON.stringify(node.region)}`,
    frontends,
  );
}

function unknown(node: NodeIdentity, what: string, frontends: readonly Frontend[]): WardropError {
  const known = frontends.map(({ id }) => id).join(', ');
  return new WardropError(
    'WARDROP_NODE_UNKNOWN',
    `node ${JSON.stringify(node.id)} (${what}) belongs to no frontend; set metadata.wardrop.frontend to one of: ${known}`,
  );
}

function text(node: NodeIdentity, key: string): string | undefined {
  const ours = node.metadata[METADATA_KEY];
  const value = isObject(ours) ? ours[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
