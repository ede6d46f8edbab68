import { filePath } from './scalars.js';

export const network = {
  type: 'object',
  description:
    'Round trips between frontends and engines: either `rttMs` or `table`. May be left out when all frontends and engines are in one region (0 ms).',
  additionalProperties: false,
  properties: {
    rttMs: {
      type: 'object',
      description:
        'Milliseconds by frontend id, then engine id. `null`: the frontend cannot reach the engine.',
      additionalProperties: {
        type: 'object',
        additionalProperties: { type: 'number', nullable: true, minimum: 0, maximum: 60000 },
      },
    },
    measure: {
      type: 'boolean',
      description:
        'Whether filters ask engines for their `healthPath` now and then to measure round trips, which correct the configured ones. Needs `steering: filter`.',
      default: true,
    },
    egressDollarsPerRequest: {
      type: 'object',
      description:
        'Dollars that the network charges for one request, by frontend id, then engine id; 0 where nothing is written. Counts as much as `policy.egressSecondsPerDollar` says.',
      additionalProperties: {
        type: 'object',
        additionalProperties: { type: 'number', minimum: 0, maximum: 1000 },
      },
    },
    table: {
      ...filePath,
      description:
        'CSV file of milliseconds between regions: the first row names the engines’ regions, the first column the frontends’. Relative to the configuration file.',
    },
  },
} as const;
