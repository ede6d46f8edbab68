import { filePath, id, model, pagePath, region } from './scalars.js';

const discovery = {
  type: 'object',
  description: 'Where the addresses of its replicas are found, instead of `endpoints`; exactly one of these.',
  additionalProperties: false,
  properties: {
    dns: {
      type: 'string',
      description: '`name:port`: every A and AAAA record of the name is a replica.',
    },
    srv: { type: 'string', description: 'Name of SRV records, such as `_http._tcp.engines.example`.' },
    file: {
      ...filePath,
      description: 'File with one `ip:port` a line, `#` for comments. Relative to the configuration file.',
    },
  },
} as const;

const metrics = {
  type: 'object',
  description: 'How its load is read; see signals.md.',
  additionalProperties: false,
  properties: {
    kind: {
      type: 'string',
      enum: ['vllm', 'sglang', 'trtllm', 'triton', 'tgi', 'custom', 'none'],
      description: 'Software whose metric names are looked for; `custom` looks for `names` only.',
      default: 'none',
    },
    path: {
      ...pagePath,
      description: 'Path of the page. Default: `/metrics`; `/prometheus/metrics` for `trtllm`.',
    },
    port: {
      type: 'integer',
      minimum: 1,
      maximum: 65535,
      description: 'Port of the page, where it is not that of the endpoint.',
    },
    names: {
      type: 'object',
      description:
        'Metrics to read signals from, as `name` or `name{label="value"}`, before those of the kind.',
      additionalProperties: false,
      properties: {
        running: { type: 'string', description: 'Gauge: requests being computed.' },
        waiting: { type: 'string', description: 'Gauge: requests in the queue.' },
        kvUse: { type: 'string', description: 'Gauge, 0…1: use of the key-value cache.' },
        prefixHits: { type: 'string', description: 'Counter: prompt tokens found in the cache.' },
        prefixQueries: { type: 'string', description: 'Counter: prompt tokens looked up in it.' },
        generatedTokens: {
          type: 'string',
          description: 'Counter: tokens of answers, each counted before it is sent.',
        },
        firstTokenSeconds: {
          type: 'string',
          description: 'Counter: seconds to first tokens, added up.',
        },
        firstTokens: { type: 'string', description: 'Counter: first tokens.' },
        tokenGapSeconds: {
          type: 'string',
          description: 'Counter: seconds between two tokens, added up.',
        },
        tokenGaps: { type: 'string', description: 'Counter: gaps between two tokens.' },
      },
    },
  },
  default: {},
} as const;

const tls = {
  type: 'object',
  description:
    'Envoys, probes and scrapes speak TLS to its replicas; 1.2 or later. Engines that share a model must agree.',
  additionalProperties: false,
  required: ['sni'],
  properties: {
    sni: {
      type: 'string',
      minLength: 1,
      description: 'Name that is asked for (SNI), and that the certificate must be for.',
    },
    caFile: {
      ...filePath,
      description:
        'PEM file of the authorities that are trusted. Relative to the configuration file. Default: those of the system.',
    },
    certFile: {
      ...filePath,
      description:
        'PEM file of the certificate chain that is shown to replicas that ask for one (mutual TLS); with `keyFile`.',
    },
    keyFile: { ...filePath, description: 'PEM file of its private key.' },
  },
} as const;

const auth = {
  type: 'object',
  description:
    'Header that its replicas want to see, in place of what clients send. Engines that share a model must agree.',
  additionalProperties: false,
  required: ['valueFile'],
  properties: {
    header: {
      type: 'string',
      pattern: '^[a-zA-Z0-9-]+$',
      hint: 'letters, digits and hyphens',
      description: 'Name of the header.',
      default: 'authorization',
    },
    valueFile: {
      ...filePath,
      description:
        'File that holds its value in one line, such as `Bearer …`. Relative to the configuration file.',
    },
  },
} as const;

export const engines = {
  type: 'array',
  description:
    'Groups of identical replicas of one or more models, each in one place and on one kind of hardware.',
  minItems: 1,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['id', 'region', 'models'],
    properties: {
      id: { ...id, description: 'Name of the engine.' },
      region: { ...region, description: 'Where it is; a name of the latency table if there is one.' },
      models: {
        type: 'array',
        minItems: 1,
        items: model,
        description: 'Model names it serves, matched exactly.',
      },
      labels: {
        type: 'object',
        additionalProperties: { type: 'string' },
        description:
          'Free labels, such as `hardware: h100`; engines with equal labels may be planned as one.',
        default: {},
      },
      profile: {
        ...id,
        description:
          'Key of `profiles`. Default: the profile with the most work per request, with a warning.',
      },
      endpoints: {
        type: 'array',
        items: { type: 'string' },
        description:
          '`ip:port` of each replica, IPv6 in brackets. An empty list is an engine scaled to nothing. Give either `endpoints` or `discovery`.',
      },
      discovery,
      metrics,
      healthPath: {
        ...pagePath,
        description: 'Path probed for readiness; only a 2xx answer counts as ready.',
        default: '/health',
      },
      maxInFlight: {
        type: 'number',
        exclusiveMinimum: 0,
        maximum: 1e6,
        description:
          'Requests in flight per replica above which conversations overflow to their backups, and from which on no more are sent. Default: overflow above what the profile expects at `policy.maxUtilization`, where it knows latencies; no limit.',
      },
      tls,
      auth,
      slowStartSeconds: {
        type: 'number',
        minimum: 0,
        maximum: 3600,
        description:
          'Seconds in which a replica that is new or comes back takes up all of its work, in four steps.',
        default: 10,
      },
    },
  },
} as const;
