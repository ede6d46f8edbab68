import { KEY_FIELDS } from '../../wire/names.js';
import type { FromSchema } from './schema-type.js';

/**
 * The one description of the configuration file: it validates, fills in defaults, completes in editors
 * (`wardrop schema`) and is printed as `docs/configuration.md`. `hint` is our own keyword: what to do when a pattern
 * does not match.
 */

const id = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  hint: 'use up to 63 letters, digits, dots, underscores and hyphens, starting with a letter or digit',
} as const;

const region = { type: 'string', minLength: 1, maxLength: 100 } as const;

const model = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}$',
  hint: 'use up to 200 letters, digits and any of . _ : / @ + -, starting with a letter or digit',
} as const;

/** As it stands in a request. */
const pagePath = {
  type: 'string',
  pattern: '^/[\\x21-\\x7e]{0,1023}$',
  hint: 'start the path with /, and write spaces and letters beyond ASCII as %20 and the like',
} as const;

const filePath = { type: 'string', minLength: 1 } as const;

const listen = (defaultAddress: string, description: string) =>
  ({
    type: 'object',
    description,
    additionalProperties: false,
    properties: {
      listen: {
        type: 'string',
        description: '`ip:port` to listen on, IPv6 in brackets.',
        default: defaultAddress,
      },
    },
    default: {},
  }) as const;

const server = {
  type: 'object',
  description: 'The control server itself. Listening addresses, files and secrets need a restart to change.',
  additionalProperties: false,
  properties: {
    xds: listen(
      '127.0.0.1:18000',
      'Where Envoys fetch clusters, endpoints, listeners and routes (gRPC, ADS).',
    ),
    sync: listen('127.0.0.1:18001', 'Where filters report usage and fetch snapshots (HTTP).'),
    admin: listen(
      '127.0.0.1:18002',
      'API, metrics and health of the control server (HTTP, unauthenticated).',
    ),
    stateFile: {
      ...filePath,
      description: 'Keeps the last plan over restarts. Relative to the configuration file.',
      default: 'wardrop-state.json',
    },
    token: {
      type: 'string',
      pattern: '^[\\x21-\\x7e]{16,}$',
      hint: 'use at least 16 printable characters without spaces',
      description:
        'Bearer token that Envoys must present to xDS and sync: at least 16 printable characters. Default: none.',
    },
    tokenFile: {
      ...filePath,
      description: 'File that holds the token, instead of `token`. Relative to the configuration file.',
    },
    tls: {
      type: 'object',
      description:
        'TLS for xDS and sync. Files are PEM, relative to the configuration file. Default: plain text.',
      additionalProperties: false,
      required: ['cert', 'key'],
      properties: {
        cert: { ...filePath, description: 'Certificate chain of the control server.' },
        key: { ...filePath, description: 'Its private key.' },
        clientCa: {
          ...filePath,
          description: 'Require client certificates signed by these authorities (mutual TLS).',
        },
      },
    },
    edsIntervalSeconds: {
      type: 'number',
      minimum: 0.1,
      maximum: 300,
      description: 'Least seconds between two pushes of endpoints that differ in weights only.',
      default: 5,
    },
    logLevel: {
      type: 'string',
      enum: ['debug', 'info', 'warn', 'error'],
      description: 'Least severity that is logged.',
      default: 'info',
    },
  },
  default: {},
} as const;

/** A value of a header, as Envoy passes it on: without spaces around it. */
const headerValue = {
  type: 'string',
  pattern: '^[\\x21-\\x7e]([\\x20-\\x7e]{0,254}[\\x21-\\x7e])?$',
  hint: 'use up to 256 printable characters',
} as const;

const headerName = {
  type: 'string',
  pattern: '^[A-Za-z0-9_-]{5,64}$',
  hint: 'use 5 to 64 letters, digits, underscores and hyphens',
} as const;

const filter = {
  type: 'object',
  description: 'What the filter in Envoy looks at; see needs.md.',
  additionalProperties: false,
  properties: {
    readBodies: {
      type: 'boolean',
      description:
        'Look for model and key in JSON and forms where headers do not give both: most clients name the model nowhere else. Such requests wait until their body has arrived. Needs Envoy 1.40; older ones do not read bodies.',
      default: true,
    },
    maxBodyBytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 1073741824,
      description:
        'Longest body that is read; longer ones are refused with 413 unless headers, or fields before the first file of a form, name the model. An Envoy holds up to this for each request whose body is under way.',
      default: 8388608,
    },
    keyHeaders: {
      type: 'array',
      maxItems: 16,
      items: headerName,
      description:
        'Headers that may carry the affinity key; the first that is present and not empty counts. Default: the list in filter.md.',
    },
    keyFields: {
      type: 'array',
      items: {
        type: 'string',
        enum: KEY_FIELDS,
      },
      description: 'Fields of the body that may, after the headers. Default: all, in this order.',
    },
    prefixKeyBytes: {
      type: 'integer',
      minimum: 0,
      maximum: 65536,
      description:
        'Where nothing else carries a key, take this many first bytes of the messages for it: conversations that begin alike share an engine. 0: such requests go to a random one.',
      default: 0,
    },
    placement: {
      type: 'boolean',
      description:
        'Let a conversation begin at another engine or replica than its key says where that has clearly less in flight for its share; see filter.md. Its later requests follow.',
      default: true,
    },
    tenantHeader: {
      ...headerName,
      description:
        'Header that carries the tenant. Set it only if something in front of Envoy writes it on every request. Default: none.',
    },
  },
  default: {},
} as const;

const timeouts = {
  type: 'object',
  description:
    'How long an engine may send nothing. After that an attempt without response headers has failed and may be retried, and an answer is ended. Answers have no limit on the whole.',
  additionalProperties: false,
  properties: {
    streamIdleSeconds: {
      type: 'number',
      minimum: 1,
      maximum: 3600,
      description:
        'Before the first byte of a stream and between two of them; twice as long for prompts of more than 8192 tokens, five times for more than 32768. A request is known to be one for a stream when its body was read.',
      default: 120,
    },
    answerSeconds: {
      type: 'number',
      minimum: 1,
      maximum: 86400,
      description: 'Before the first byte of other answers, which come as a whole.',
      default: 600,
    },
  },
  default: {},
} as const;

const frontends = {
  type: 'array',
  description: 'Clusters of Envoys, each in one place: the sources of demand.',
  minItems: 1,
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['id', 'region'],
    properties: {
      id: { ...id, description: 'Name of the frontend; Envoys name it in their bootstrap.' },
      region: { ...region, description: 'Where it is; a name of the latency table if there is one.' },
      listen: {
        type: 'string',
        description: '`ip:port` its Envoys listen on, unless an Envoy’s node metadata says otherwise.',
        default: '0.0.0.0:10000',
      },
    },
  },
} as const;

const engines = {
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
      discovery: {
        type: 'object',
        description:
          'Where the addresses of its replicas are found, instead of `endpoints`; exactly one of these.',
        additionalProperties: false,
        properties: {
          dns: {
            type: 'string',
            description: '`name:port`: every A and AAAA record of the name is a replica.',
          },
          srv: { type: 'string', description: 'Name of SRV records, such as `_http._tcp.engines.example`.' },
          file: {
            ...filePath,
            description:
              'File with one `ip:port` a line, `#` for comments. Relative to the configuration file.',
          },
        },
      },
      metrics: {
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
      },
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
      tls: {
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
        },
      },
      auth: {
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
      },
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

const network = {
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

const seconds = (description: string) =>
  ({ type: 'number', minimum: 0, maximum: 3600, description, default: 0 }) as const;

const profiles = {
  type: 'object',
  description:
    'Latency and work of each kind of engine, by profile id. `wardrop fit` writes them from benchmarks.',
  propertyNames: id,
  additionalProperties: {
    type: 'object',
    description: 'Give either `work`, `ttft` and `tbot`, or `requestsPerSecond` alone.',
    additionalProperties: false,
    properties: {
      requestsPerSecond: {
        type: 'number',
        minimum: 1e-4,
        maximum: 1e6,
        description:
          'Shorthand: requests per second that one replica can serve, whatever their size. TTFT then only queues (one server with exponential service times), unless `ttft` says otherwise.',
      },
      work: {
        type: 'object',
        description: 'Replica-seconds one request costs; the three terms add up.',
        additionalProperties: false,
        properties: {
          secondsPerRequest: seconds('Per request.'),
          secondsPerUncachedPromptToken: seconds('Per prompt token that is not in the cache.'),
          secondsPerOutputToken: seconds('Per output token.'),
        },
      },
      ttft: {
        type: 'object',
        description:
          'Time to first token at utilisation rho: `baseSeconds + secondsPerUncachedPromptToken · tokens + queueSeconds · rho / (1 − rho)`.',
        additionalProperties: false,
        properties: {
          baseSeconds: seconds('Fixed part.'),
          secondsPerUncachedPromptToken: seconds('Prefill time per prompt token that is not in the cache.'),
          queueSeconds: seconds('Scale of the queueing part.'),
        },
      },
      tbot: {
        type: 'object',
        description: 'Time between output tokens at utilisation rho: `baseSeconds / (1 − kappa · rho)`.',
        additionalProperties: false,
        properties: {
          baseSeconds: seconds('Time between tokens of an idle replica.'),
          kappa: {
            type: 'number',
            minimum: 0,
            exclusiveMaximum: 1,
            description: 'How much load stretches it.',
            default: 0,
          },
        },
      },
      maxFittedRho: {
        type: 'number',
        exclusiveMinimum: 0,
        maximum: 1,
        description: 'The curves were fitted for utilisations from 0 to this one.',
        default: 0.98,
      },
    },
  },
  default: {},
} as const;

const tokens = (description: string, least: number) =>
  ({ type: 'number', minimum: least, maximum: 1e7, description }) as const;

const rate = {
  requestsPerSecond: {
    type: 'number',
    minimum: 0,
    maximum: 1e7,
    description: 'Expected first attempts per second.',
  },
  promptTokens: tokens('Mean prompt tokens per request, cached ones included.', 0),
  uncachedPromptTokens: tokens(
    'Mean prompt tokens per request that are not in a cache while conversations stay where they are.',
    0,
  ),
  outputTokens: tokens('Mean output tokens per request.', 1),
  followUpShare: {
    type: 'number',
    minimum: 0,
    maximum: 1,
    description: 'Share of requests that continue a conversation.',
  },
  turnGapSeconds: {
    type: 'number',
    exclusiveMinimum: 0,
    maximum: 1e6,
    description: 'Mean seconds between two turns of a conversation.',
  },
} as const;

const demand = {
  type: 'object',
  description:
    'What each frontend is expected to ask for, by frontend id. The rate and the sizes of its requests are used until enough is measured; the share of follow-ups stays. Defaults: 0 requests/s, 512 prompt tokens, all of them uncached, 128 output tokens, a follow-up share of 0.5, a turn gap of 30 s.',
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...rate,
      models: {
        type: 'object',
        description: 'The same keys by model name, where several models are served.',
        additionalProperties: { type: 'object', additionalProperties: false, properties: rate },
      },
      pools: {
        type: 'object',
        description:
          'The same keys by pool id, for requests with needs. Defaults: no requests, of the sizes of the model’s.',
        additionalProperties: { type: 'object', additionalProperties: false, properties: rate },
      },
    },
  },
  default: {},
} as const;

/** By what a request can be told, whatever its body holds. */
const requestSigns = {
  header: {
    type: 'object',
    description: 'A header, by name, has this value.',
    minProperties: 1,
    propertyNames: headerName,
    additionalProperties: headerValue,
  },
  hasHeader: { ...headerName, description: 'A header of this name is there and not empty.' },
  path: {
    type: 'string',
    pattern: '^/[\\x21-\\x7e]{0,255}$',
    hint: 'start the path with /, without spaces',
    description: 'The path begins so.',
  },
  tenant: { ...headerValue, description: 'The tenant, as `filter.tenantHeader` says, is this one.' },
} as const;

const needs = {
  type: 'object',
  description:
    'Named requirements that some requests carry and some engines meet, by name; see needs.md. Never relaxed: a request that nobody may serve is refused.',
  propertyNames: id,
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['when'],
    properties: {
      when: {
        type: 'object',
        description: 'When a request carries the need; exactly one of these.',
        additionalProperties: false,
        properties: {
          ...requestSigns,
          body: {
            type: 'string',
            enum: ['images', 'audio', 'files', 'tools', 'stream'],
            description: 'The body holds such parts, offers tools, or asks for a stream.',
          },
          promptTokens: {
            type: 'integer',
            minimum: 0,
            maximum: 4294967295,
            description: 'The prompt has more tokens than this, at 4 bytes a token.',
          },
        },
      },
      engines: {
        type: 'object',
        description: 'Labels that an engine must have to meet it: each with this value, or one of these.',
        additionalProperties: { type: ['string', 'array'], items: { type: 'string' } },
      },
      refuse: {
        type: 'boolean',
        description: 'Instead of `engines`: nobody meets it, and requests that carry it are refused.',
        default: false,
      },
    },
  },
  default: {},
} as const;

const classes = {
  type: 'object',
  description:
    'Requests that are more or less important than others, by name; see needs.md. When there is more demand than capacity, the least important are refused first. A request that fits several belongs to the first.',
  propertyNames: id,
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    required: ['priority', 'when'],
    properties: {
      priority: {
        type: 'integer',
        minimum: -100,
        maximum: 100,
        description: 'Larger is more important; requests of no class have 0. At most 7 others may be in use.',
      },
      when: {
        type: 'object',
        description: 'Which requests belong to it; exactly one of these.',
        additionalProperties: false,
        properties: {
          ...requestSigns,
          serviceTier: { ...headerValue, description: 'The body’s `service_tier` is this one.' },
          priorityAbove: {
            type: 'integer',
            minimum: 0,
            maximum: 4294967295,
            description: 'The body’s `priority` is above this; as in vLLM, a larger one waits longer.',
          },
        },
      },
    },
  },
  default: {},
} as const;

const poolId = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._:/@+~-]{0,255}$',
  hint: 'use the model name, or for requests with needs the pool id that `wardrop validate` prints',
} as const;

const share = (description: string) => ({ type: 'number', minimum: 0, maximum: 1, description }) as const;

const policy = {
  type: 'object',
  description: 'What the operator decides about all plans.',
  additionalProperties: false,
  properties: {
    mode: {
      type: 'string',
      enum: ['steer', 'observe'],
      description:
        '`observe`: requests are decided on, counted and told what was decided, but steered nowhere. A change is in force within seconds, without a restart.',
      default: 'steer',
    },
    steerPercent: {
      type: 'number',
      minimum: 0,
      maximum: 100,
      description:
        'Percent of affinity keys that are steered, to ramp up; the others are observed. A conversation is on one side only. 0 is the kill switch.',
      default: 100,
    },
    targetUtilization: {
      ...share('Utilisation above which cost rises steeply.'),
      minimum: 0.05,
      default: 0.9,
    },
    maxUtilization: {
      ...share('Utilisation that no plan exceeds; demand above it is refused with 429.'),
      minimum: 0.05,
      default: 1,
    },
    retries: {
      type: 'object',
      description:
        'Retries earned by each first attempt; falls from `max` to `min` as utilisation nears full.',
      additionalProperties: false,
      properties: {
        max: { ...share('While there is room.'), default: 0.2 },
        min: { ...share('When full.'), default: 0 },
        backstop: {
          ...share(
            'A second limit, kept by Envoy itself: retries in progress, as a share of the requests in progress, for each pool and Envoy; 3 are always allowed. Pushed as runtime values. Default: none.',
          ),
        },
      },
      default: {},
    },
    bounds: {
      type: 'array',
      description: 'Bounds on single weights; shown as such wherever a weight is explained.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['frontend', 'pool', 'engine'],
        properties: {
          frontend: { ...id, description: 'Frontend id.' },
          pool: { ...poolId, description: 'Pool id; the model name for requests without needs.' },
          engine: { ...id, description: 'Engine id.' },
          min: { ...share('Least weight.'), default: 0 },
          max: { ...share('Largest weight.'), default: 1 },
          pin: share('The weight itself, in place of min and max.'),
        },
      },
      default: [],
    },
    minShares: {
      type: 'array',
      description: 'Least share of a class that is served, whatever its priority.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['pool', 'share'],
        properties: {
          pool: { ...poolId, description: 'Pool id; the model name for requests without needs.' },
          priority: { type: 'integer', minimum: -100, maximum: 100, description: 'Priority.', default: 0 },
          share: share('Share that is served.'),
        },
      },
      default: [],
    },
    outlierPenalty: {
      enum: ['enforce', 'observe'],
      description:
        'What becomes of an engine that answers much slower than its profile says at its load: `enforce` gives it less, ' +
        '`observe` only shows it and raises an alarm. An operator can hold or release a single penalty with `wardrop penalty`.',
      default: 'enforce',
    },
    egressSecondsPerDollar: {
      type: 'number',
      minimum: 0,
      maximum: 1e9,
      description: 'Seconds of user latency that one dollar of egress is worth; 0 ignores egress.',
      default: 0,
    },
  },
  default: {},
} as const;

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
