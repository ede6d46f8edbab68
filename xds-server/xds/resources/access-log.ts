import { LOG_STATE, READY_PATH } from '../../../wire/names.js';
import { FileAccessLogSchema } from '../../gen/envoy/extensions/access_loggers/file/v3/file_pb.js';
import {
  StderrAccessLogSchema,
  StdoutAccessLogSchema,
} from '../../gen/envoy/extensions/access_loggers/stream/v3/stream_pb.js';
import { filter } from './pack.js';

/** Filter state that the filter writes when it is told to, with what is only known at the end of a request. */
const told = (name: string) => `%FILTER_STATE(${LOG_STATE}${name}:PLAIN)%`;

const format = {
  time: '%START_TIME%',
  request_id: '%REQ(X-REQUEST-ID)%',
  method: '%REQ(:METHOD)%',
  path: '%REQ(:PATH)%',
  status: '%RESPONSE_CODE%',
  flags: '%RESPONSE_FLAGS%',
  details: '%RESPONSE_CODE_DETAILS%',
  duration_ms: '%DURATION%',
  request_bytes: '%BYTES_RECEIVED%',
  response_bytes: '%BYTES_SENT%',
  // Without `_RAW` it is the name in statistics.
  pool: '%UPSTREAM_CLUSTER_RAW%',
  limits: '%ROUTE_NAME%',
  engine: told('engine'),
  replica: '%UPSTREAM_HOST%',
  plan: told('plan'),
  reason: told('reason'),
  attempts: '%UPSTREAM_REQUEST_ATTEMPT_COUNT%',
  ttft_ms: told('ttft_ms'),
  prompt_tokens: told('prompt_tokens'),
  cached_tokens: told('cached_tokens'),
  output_tokens: told('output_tokens'),
};

/** All but the checks of whether the filter is ready. */
const but = {
  filter: {
    filterSpecifier: {
      case: 'headerFilter' as const,
      value: {
        header: {
          name: ':path',
          headerMatchSpecifier: {
            case: 'stringMatch' as const,
            value: { matchPattern: { case: 'exact' as const, value: READY_PATH } },
          },
          invertMatch: true,
        },
      },
    },
  },
};

/** Writes a line of JSON for each request: what was asked for, who answered it and why, and how fast. */
export function accessLogOf(path: string, frontendId: string) {
  const accessLogFormat = {
    case: 'logFormat' as const,
    value: { format: { case: 'jsonFormat' as const, value: { ...format, frontend: frontendId } } },
  };
  switch (path) {
    case '/dev/stdout':
      return { ...but, ...filter('envoy.access_loggers.stdout', StdoutAccessLogSchema, { accessLogFormat }) };
    case '/dev/stderr':
      return { ...but, ...filter('envoy.access_loggers.stderr', StderrAccessLogSchema, { accessLogFormat }) };
    default:
      return {
        ...but,
        ...filter('envoy.access_loggers.file', FileAccessLogSchema, { path, accessLogFormat }),
      };
  }
}
