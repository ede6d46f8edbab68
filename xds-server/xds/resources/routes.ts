import { CLUSTER_HEADER, HASH_HEADER, KEY_HEADERS, ROUTE_HEADER, ROUTES } from '../../../wire/names.js';
import { RouteConfigurationSchema } from '../../gen/envoy/config/route/v3/route_pb.js';
import { PreviousHostsPredicateSchema } from '../../gen/envoy/extensions/retry/host/previous_hosts/v3/previous_hosts_pb.js';
import type { Resource } from '../protocol/resource.js';
import { COMMON_FILTER_NAME, FILTER_NAME } from './filter.js';
import { headerOf, isHeader } from './headers.js';
import { modelList, modelListRoute } from './model-list.js';
import { duration, filter, resource } from './pack.js';
import type { Steering } from './steering.js';

/** Of the listener that is ours. */
export const ROUTES_NAME = 'wardrop-listener';
/** For listeners of others, whose filter always says how many retries a request has. */
export const COMMON_ROUTES_NAME = 'wardrop';

/** How long an engine may be silent. */
export interface Timeouts {
  /** While it streams an answer to a short prompt, its first byte included. */
  readonly streamIdleSeconds: number;
  /** While it makes an answer that is not known to be streamed, and so comes as a whole. */
  readonly answerSeconds: number;
}

export interface RoutesOptions {
  /** Asks engines for load reports in their responses; default false. */
  readonly loadReports?: boolean;
  /** What Envoy must be able to hold of a body until the filter has read it; Envoy's default (1 MiB) when absent. */
  readonly bufferBytes?: number;
  /** All names by which requests may ask for a model; default: they are not listed. */
  readonly models?: readonly string[];
}

/** What the usual clients wait for a whole answer is ten minutes. */
export const DEFAULT_TIMEOUTS: Timeouts = { streamIdleSeconds: 120, answerSeconds: 600 };

/** An answer to a longer prompt may begin later, and Envoy has one limit for the first byte and the others. */
const STREAM_FACTORS = [1, 2, 5];
/** Attempts that a request can have, and some slack: a stuck engine ends the attempt and not the request. */
const MOST_ATTEMPTS = 3;
const SLACK_MS = 60_000;

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

/**
 * What the routes of our listener grant by themselves: what the filter grants most requests. To all others it says how many
 * they have, in x-envoy-max-retries, also to those that it does not steer.
 */
export const ROUTE_RETRIES = 2;

/**
 * The filter's hash covers key, tenant and salt, wherever the key came from. With `override-host` Envoy picks only what
 * the filter's list leaves open, so that this costs no header.
 */
const hashHeaders = (steering: Steering) => (steering === 'override-host' ? KEY_HEADERS : [HASH_HEADER]);

/** Routes for our listener, and for those of others. */
export function routesOf(steering: Steering, timeouts: Timeouts, options: RoutesOptions): Resource[] {
  return [
    routes(ROUTES_NAME, FILTER_NAME, retriesOf(steering, ROUTE_RETRIES), steering, timeouts, options),
    routes(COMMON_ROUTES_NAME, COMMON_FILTER_NAME, retriesOf(steering, 0), steering, timeouts, options),
  ];
}

const retriesOf = (steering: Steering, numRetries: number) =>
  steering === 'override-host' ? { numRetries } : nativeRetries;

/**
 * Routes that differ in their limits only: the filter names the cluster, how often Envoy may try and, for answers that
 * it knows to be streamed, the limits.
 */
function routes(
  routesName: string,
  filterName: string,
  retries: ReturnType<typeof retriesOf>,
  steering: Steering,
  timeouts: Timeouts,
  options: RoutesOptions,
): Resource {
  const { loadReports = false, bufferBytes, models = [] } = options;
  const streams = ROUTES.map((name, index) => {
    const idleMs = timeouts.streamIdleSeconds * STREAM_FACTORS[index]! * 1_000;
    return { name, header: name, idleMs };
  });
  const others = { name: 'answer', header: undefined, idleMs: timeouts.answerSeconds * 1_000 };
  const limited = ({ name, header, idleMs }: (typeof streams)[number] | typeof others) => ({
    name,
    match: {
      pathSpecifier: { case: 'prefix' as const, value: '/' },
      headers: header === undefined ? [] : [isHeader(ROUTE_HEADER, header)],
    },
    requestHeadersToRemove: header === undefined ? [] : [ROUTE_HEADER],
    action: { case: 'route' as const, value: action(steering, retries, idleMs) },
  });
  // The list of an only model is its engine's, which tells more of it.
  const list = models.length > 1 ? modelList(models) : undefined;
  return resource(routesName, RouteConfigurationSchema, {
    name: routesName,
    ...(list !== undefined && { maxDirectResponseBodySizeBytes: Buffer.byteLength(list) }),
    virtualHosts: [
      {
        name: routesName,
        domains: ['*'],
        // The filter settles its retry budget by it.
        includeAttemptCountInResponse: true,
        ...(bufferBytes !== undefined && { requestBodyBufferLimit: BigInt(bufferBytes) }),
        requestHeadersToAdd: loadReports ? [askForLoad] : [],
        routes: [
          ...streams.map(limited),
          ...(list === undefined ? [] : [modelListRoute(list, filterName)]),
          limited(others),
        ],
      },
    ],
  });
}

/** What the filter reads of the response, and takes out of it. */
const askForLoad = headerOf('endpoint-load-metrics-format', 'TEXT');

function action(steering: Steering, retries: ReturnType<typeof retriesOf>, idleMs: number) {
  return {
    clusterSpecifier: { case: 'clusterHeader' as const, value: CLUSTER_HEADER },
    // No limit on the whole: a long answer is not a fault.
    timeout: duration(0),
    idleTimeout: duration(idleMs * MOST_ATTEMPTS + SLACK_MS),
    // Where Envoy picks the host, the requests of a conversation go to the same one.
    hashPolicy: hashHeaders(steering).map((headerName) => ({
      policySpecifier: { case: 'header' as const, value: { headerName } },
      terminal: true,
    })),
    retryPolicy: {
      // A failure before the response headers. Once they are sent, nothing is retried.
      retryOn: 'connect-failure,refused-stream,reset,retriable-status-codes',
      retriableStatusCodes: [502, 503, 504],
      ...retries,
      // Holds before the headers, where it leads to a retry, and after them, where it ends the answer. Beside a shorter
      // per_try_timeout it would not hold after the headers any more (tried on 1.40).
      perTryIdleTimeout: duration(idleMs),
      retryBackOff: {
        baseInterval: duration(RETRY_BACKOFF_MS.base),
        maxInterval: duration(RETRY_BACKOFF_MS.max),
      },
    },
  };
}
