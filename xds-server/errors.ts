/**
 * The one catalogue of errors that Wardrop raises on purpose. Each has a stable code that logs, the API and the
 * documentation share; anything without a code is a bug.
 */
export const errorCodes = {
  WARDROP_CONFIG_INVALID: 'The configuration does not match the schema or contradicts itself',
  WARDROP_CONFIG_UNREADABLE: 'The configuration file cannot be read or is not YAML',
  WARDROP_PROFILE_INVALID: 'A profile is missing or its parameters are out of range',
  WARDROP_BENCHMARK_INVALID: 'A benchmark file cannot be read or does not support a fit',
  WARDROP_INPUT_INVALID:
    'The optimizer was given a state that contradicts itself or holds something that is no number',
  WARDROP_OUTPUT_FAILED: 'A file cannot be written',
  WARDROP_SOLVER_FAILED: 'The solver did not return an optimal solution',
  WARDROP_SOLVER_TIMEOUT: 'The solver did not answer before its deadline',
  WARDROP_PLAN_REJECTED: 'A plan failed the independent checks and was not published',
  WARDROP_STATE_INVALID: 'The state file cannot be used',
  WARDROP_RECORDING_INVALID: 'A recording cannot be read',
  WARDROP_REPORT_INVALID: 'A usage report is malformed',
  WARDROP_PEER_INVALID: 'What another control server says cannot be read',
  WARDROP_SNAPSHOT_INVALID: 'A snapshot cannot be written from this plan',
  WARDROP_NODE_UNKNOWN: 'A connecting Envoy names no known frontend',
  WARDROP_XDS_REQUEST_INVALID: 'An xDS client broke the protocol',
  WARDROP_QUERY_INVALID: 'A question to the API or the command line names something unknown',
  WARDROP_PROGRAM_CHANGED: 'The installed program is not the one that runs',
  WARDROP_NOT_READY: 'There is no plan yet',
  WARDROP_BUSY: 'Another question of this kind is being answered',
  WARDROP_UNAUTHENTICATED: 'The token is missing or wrong',
  WARDROP_ENVOY_MISSING: 'Envoy 1.40 cannot be found',
  WARDROP_PORT_IN_USE: 'A listening address is taken',
  WARDROP_LISTEN_FAILED: 'An address cannot be listened on',
} as const;

export type ErrorCode = keyof typeof errorCodes;

/** An error with a stable code and a message that says where and what to do. */
export class WardropError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'WardropError';
    this.code = code;
  }
}
