import type { JsonObject } from '@bufbuild/protobuf';
import { RuntimeSchema } from '../../gen/envoy/service/runtime/v3/rtds_pb.js';
import type { Resource } from '../protocol/resource.js';
import { resource } from './pack.js';

/** Name of the layer, in bootstraps and as a resource. */
export const RUNTIME_NAME = 'wardrop';

/** Retries that are always allowed at a time, so that a nearly idle Envoy can retry at all. */
const MIN_RETRIES = 3;

/**
 * Runtime values of Envoy, which need no new cluster. With a backstop they give every cluster a retry budget of
 * Envoy's own, in the place of `max_retries`: a share of the requests that are active, 0..1. Without one the layer is
 * empty, which takes back what was set before.
 */
export function runtimeOf(poolIds: readonly string[], backstop: number | undefined): Resource {
  const layer: JsonObject = {};
  for (const id of backstop === undefined ? [] : poolIds) {
    for (const priority of ['default', 'high']) {
      const budget = `circuit_breakers.${id}.${priority}.retry_budget`;
      layer[`${budget}.budget_percent`] = backstop! * 100;
      layer[`${budget}.min_retry_concurrency`] = MIN_RETRIES;
    }
  }
  return resource(RUNTIME_NAME, RuntimeSchema, { name: RUNTIME_NAME, layer });
}
