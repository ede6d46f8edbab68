import { CLUSTER_HEADER, HASH_HEADER, KEY_HEADERS } from '../../../wire/names.js';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.js';
import { PreviousHostsPredicateSchema } from '../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js';
import type { Resource } from '../protocol/resource.js';
import { duration, filter, resource } from './pack.js';
import type { Steering } from './steering.js';

export const ROUTES_NAME = 'wardrop';

/**
 * An answer that isn't streamed sends nothing until its last token exists, which can take minutes; ten is what the
 * usual clients wait. After that without a byte in either direction, the attempt has failed.
 */
const ATTEMPT_IDLE_MS = 600_000;
/** Longer than an attempt's, so that a stuck engine ends the attempt and not the request. */
const STREAM_IDLE_MS = 660_000;

/** Another host takes the retry, so there is nothing to wait for; the jitter only spreads simultaneous ones. */
const RETRY_BACKOFF_MS = { base: 5, max: 50 };

/** Without a filter that grants retries: this many, at other hosts, within the cluster's budget. */
const nativeRetries = {
  numRetries: 2,
  retryHostPredicate: [
    filter('envoy.retry_host_predicates.previous_hosts', PreviousHostsPredicateSchema, {}),
  ],
  hostSelectionRetryMaxAttempts: 5n,
};

/** Retries are granted per request by the filter, in x-envoy-max-retries; without a grant, none. */
const grantedRetries = { numRetries: 0 };

/**
 * The filter's hash covers key, tenant and salt, wherever the key came from. With `override-host` Envoy picks only what
 * the filter's list leaves open, so that this costs no header.
 */
const hashHeaders = (steering: Steering) => (steering === 'override-host' ? KEY_HEADERS : [HASH_HEADER]);

/** The one route: the filter names the cluster, and how often Envoy may try. */
export function routes(steering: Steering): Resource {
  return resource(ROUTES_NAME, RouteConfigurationSchema, {
    name: ROUTES_NAME,
    virtualHosts: [
      {
        name: ROUTES_NAME,
        domains: ['*'],
        // The filter settles its retry budget by it.
        includeAttemptCountInResponse: true,
        routes: [
          {
            match: { pathSpecifier: { case: 'prefix', value: '/' } },
            action: {
              case: 'route',
              value: {
                clusterSpecifier: { case: 'clusterHeader', value: CLUSTER_HEADER },
                // No limit on the whole: a long answer is not a fault.
                timeout: duration(0),
                idleTimeout: duration(STREAM_IDLE_MS),
                // Where Envoy picks the host, the requests of a conversation go to the same one.
                hashPolicy: hashHeaders(steering).map((headerName) => ({
                  policySpecifier: { case: 'header' as const, value: { headerName } },
                  terminal: true,
                })),
                retryPolicy: {
                  // A failure before the response headers. Once they are sent, nothing is retried.
                  retryOn: 'connect-failure,refused-stream,reset,retriable-status-codes',
                  retriableStatusCodes: [502, 503, 504],
                  ...(steering === 'override-host' ? grantedRetries : nativeRetries),
                  perTryIdleTimeout: duration(ATTEMPT_IDLE_MS),
                  retryBackOff: {
                    baseInterval: duration(RETRY_BACKOFF_MS.base),
                    maxInterval: duration(RETRY_BACKOFF_MS.max),
                  },
                },
              },
            },
          },
        ],
      },
    ],
  });
}
