import type { Config, SteeringChoice } from '../../config/config.js';
import { CONNECTION_BUFFER_BYTES, type EnvoyOptions, type Steering } from '../../xds/index.js';

/**
 * Room beside the longest body, so that the filter and not Envoy answers for one that is longer: what may come in at once
 * behind a body that the filter still waits for, and some more.
 */
const BUFFER_SLACK_BYTES = CONNECTION_BUFFER_BYTES + 65_536;

const steeringOf: Readonly<Record<SteeringChoice, Steering>> = {
  filter: 'override-host',
  native: 'maglev',
  'native-ring-hash': 'ring-hash',
  'native-round-robin': 'round-robin',
};

/** How the Envoys of a frontend are set up. */
export function envoyOptions(
  {
    filter,
    timeouts,
    loadReports,
    accessLog,
    steering,
    retryBackstop,
    upstreams,
    server,
  }: Pick<
    Config,
    | 'filter'
    | 'timeouts'
    | 'loadReports'
    | 'accessLog'
    | 'steering'
    | 'retryBackstop'
    | 'upstreams'
    | 'server'
  >,
  frontendId: string,
): EnvoyOptions {
  const { readBodies, maxBodyBytes, ...rest } = filter;
  return {
    steering: steeringOf[steering],
    timeouts,
    upstreams,
    ...(loadReports && { loadReports }),
    ...(accessLog !== undefined && { accessLog }),
    ...(retryBackstop !== undefined && { retryBackstop }),
    filter: {
      frontendId,
      ...(server.token !== undefined && { syncToken: server.token }),
      ...rest,
      ...(readBodies && { readBodies, maxBodyBytes }),
      ...(accessLog !== undefined && { logFields: true }),
    },
    ...(readBodies && { bufferBytes: maxBodyBytes + BUFFER_SLACK_BYTES }),
  };
}
