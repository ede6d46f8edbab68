import { demand } from './demand.js';
import { engines } from './engines.js';
import { filter } from './filter.js';
import { frontends } from './frontends.js';
import { classes, needs } from './needs.js';
import { network } from './network.js';
import { policy } from './policy.js';
import { profiles } from './profiles.js';
import { model } from './scalars.js';
import type { FromSchema } from './schema-type.js';
import { server } from './server.js';
import { timeouts } from './timeouts.js';

/**
 * The one description of the configuration file: it validates, fills in defaults, completes in editors
 * (`wardrop schema`) and is printed as `docs/configuration.md`. `hint` is our own keyword: what to do when a pattern
 * does not match.
 */
export const configSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'Wardrop configuration',
  type: 'object',
  additionalProperties: false,
  required: ['frontends', 'engines'],
  properties: {
    server,
    frontends,
    engines,
    network,
    profiles,
    demand,
    policy,
    needs,
    classes,
    aliases: {
      type: 'object',
      description:
        'Other names of models, by name; requests under either share one pool. Bodies are not changed, so engines must know both names.',
      propertyNames: model,
      additionalProperties: model,
      default: {},
    },
    filter,
    timeouts,
    loadReports: {
      type: 'boolean',
      description:
        'Ask engines to say in each response how loaded they are (ORCA, `endpoint-load-metrics-format: TEXT`), as vLLM and Triton can; see filter.md.',
      default: false,
    },
    accessLog: {
      type: 'string',
      pattern: '^/[^\\x00-\\x1f\\x7f]*[^/\\x00-\\x1f\\x7f]$',
      hint: 'give the whole path of a file, from / on',
      description:
        'Where Envoys write a line of JSON for each request: `/dev/stdout`, `/dev/stderr` or a file of theirs; see filter.md. Default: nowhere.',
    },
    steering: {
      type: 'string',
      enum: ['filter', 'native', 'native-ring-hash', 'native-round-robin'],
      description:
        'Who picks the engine of a request. `filter`: the filter, by the plan’s partition. The others: Envoy itself, by the weights and, but for round robin, by the hash of the affinity key (`native` by a maglev table); the filter only names the pool and refuses what may not be served; see xds.md. Default: `filter`.',
      default: 'filter',
    },
  },
} as const;

/** A valid configuration file with defaults filled in. */
export type ConfigFile = FromSchema<typeof configSchema>;
