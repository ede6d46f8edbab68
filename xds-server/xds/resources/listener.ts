import { CLIENT_STEERING_HEADERS } from '../../../wire/names.js';
import type { Address } from '../../fleet/fleet.js';
import { ListenerSchema } from '../../gen/envoy/config/listener/v3/listener_pb.js';
import { RouterSchema } from '../../gen/envoy/extensions/filters/http/router/v3/router_pb.js';
import {
  HttpConnectionManager_PathWithEscapedSlashesAction,
  HttpConnectionManagerSchema,
} from '../../gen/envoy/extensions/filters/network/http_connection_manager/v3/http_connection_manager_pb.js';
import { HeaderMutationSchema } from '../../gen/envoy/extensions/http/early_header_mutation/header_mutation/v3/header_mutation_pb.js';
import type { Resource } from '../protocol/resource.js';
import { accessLogOf } from './access-log.js';
import { envoyAddress } from './address.js';
import { discoveredFilter, fromAds } from './discovered.js';
import { FILTER_NAME } from './filter.js';
import { removals } from './headers.js';
import { duration, extension, filter, resource } from './pack.js';
import { ROUTES_NAME } from './routes.js';

export const LISTENER_NAME = 'wardrop';

const REQUEST_HEADERS_MS = 10_000;

/** Most that is read of a connection at once; Envoy's own default. */
export const CONNECTION_BUFFER_BYTES = 1_048_576;

export interface ListenerInput {
  readonly frontendId: string;
  readonly listen: Address;
  /** Where a line of JSON is written for each request; see `accessLogOf`. Default none. */
  readonly accessLog?: string | undefined;
}

/** Where a frontend's requests come in: what steers Envoy is taken from the client, then our filter, then the router. */
export function listenerOf(input: ListenerInput): Resource {
  return resource(
    LISTENER_NAME,
    ListenerSchema,
    {
      name: LISTENER_NAME,
      address: envoyAddress(input.listen),
      perConnectionBufferLimitBytes: CONNECTION_BUFFER_BYTES,
      filterChains: [
        {
          filters: [
            filter(
              'envoy.filters.network.http_connection_manager',
              HttpConnectionManagerSchema,
              connectionManager(input),
            ),
          ],
        },
      ],
    },
    [ROUTES_NAME],
  );
}

/**
 * By the same stream as the listener, which waits for it as long as it takes: after 15 s, Envoy would answer 500 without
 * the filter and 404 without routes, and put such a listener in the place of one that serves.
 */
const ads = fromAds(0);

/** Envoy has rejected the first filter that it was given; of a filter that is missing it says only that by itself. */
const NO_FILTER_FLAG = 'NFCF';

/**
 * Envoy's own answers, in the shape of OpenAI's errors and Anthropic's. The filter's have that shape already; Envoy's are known
 * by their response flags. The first that fits counts.
 */
const localReplyConfig = {
  mappers: [
    // Of itself, a 500: clients and proxies do not try again elsewhere what may be a fault of the request.
    { ...mapper([NO_FILTER_FLAG], 'this Envoy has no filter'), statusCode: 503 },
    mapper([], '%LOCAL_REPLY_BODY%'),
  ],
};

/** For answers with one of these flags; none stands for any. */
function mapper(flags: readonly string[], message: string) {
  return {
    filter: {
      filterSpecifier: { case: 'responseFlagFilter' as const, value: { flags: [...flags] } },
    },
    bodyFormatOverride: {
      format: {
        case: 'jsonFormat' as const,
        value: {
          type: 'error',
          error: { message, type: 'server_error', param: null, code: '%RESPONSE_CODE_DETAILS%' },
        },
      },
    },
  };
}

function connectionManager(input: ListenerInput) {
  return {
    statPrefix: LISTENER_NAME,
    routeSpecifier: {
      case: 'rds' as const,
      value: { routeConfigName: ROUTES_NAME, configSource: ads },
    },
    // The client's address is the peer's, whatever the client says.
    useRemoteAddress: true,
    // Needs go by the path that engines get, so it is plain before the filter sees it: a server behind would make it so.
    normalizePath: true,
    mergeSlashes: true,
    pathWithEscapedSlashesAction: HttpConnectionManager_PathWithEscapedSlashesAction.UNESCAPE_AND_FORWARD,
    // Slow bodies are a matter of the route's limits; slow headers have no excuse.
    requestHeadersTimeout: duration(REQUEST_HEADERS_MS),
    // Runs before any filter and before routing, also while the filter's VM is down.
    earlyHeaderMutationExtensions: [
      extension('envoy.http.early_header_mutation.header_mutation', HeaderMutationSchema, {
        mutations: removals(CLIENT_STEERING_HEADERS),
      }),
    ],
    // The route limits idle streams; a limit here would also end requests that wait for their first token.
    streamIdleTimeout: duration(0),
    // Realtime APIs; without it Envoy answers 403.
    upgradeConfigs: [{ upgradeType: 'websocket' }],
    accessLog: accessLogsOf(input),
    // So that a client can name the line that tells of its request; it learns of no other id, as Envoy draws one.
    alwaysSetRequestIdInResponse: input.accessLog !== undefined,
    localReplyConfig,
    httpFilters: [discoveredFilter(FILTER_NAME, ads), filter('envoy.filters.http.router', RouterSchema, {})],
  };
}

function accessLogsOf({ accessLog, frontendId }: ListenerInput) {
  return accessLog === undefined ? [] : [accessLogOf(accessLog, frontendId)];
}
