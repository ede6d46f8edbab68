import type { FromSchema } from '../../xds-server/config/schema/schema-type.js';
import { MEASURE_NAMES } from '../measures/measures.js';

/**
 * The one description of scenario files: it validates and fills in defaults. Seconds count from the beginning of the run, warm-up included.
 */

const id = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$',
  hint: 'use up to 63 letters, digits, dots, underscores and hyphens, starting with a letter or digit',
} as const;

/** An engine, or one of its replicas. */
const replicaId = {
  type: 'string',
  pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}(/[0-9]{1,4})?$',
  hint: 'use the id of an engine, or one of its replicas as a/0',
} as const;

const text = { type: 'string', minLength: 1, maxLength: 400 } as const;
const file = { type: 'string', minLength: 1 } as const;

const rps = (description: string) => ({ type: 'number', minimum: 0, maximum: 1e6, description }) as const;
const seconds = (description: string) => ({ type: 'number', minimum: 0, maximum: 1e6, description }) as const;
const above0 = (description: string) =>
  ({ type: 'number', exclusiveMinimum: 0, maximum: 1e6, description }) as const;
const share = (description: string) => ({ type: 'number', minimum: 0, maximum: 1, description }) as const;
/** That there are two, in order, is checked where workloads are made. */
const range = (description: string, least = 0) =>
  ({
    type: 'array',
    items: { type: 'number', minimum: least, maximum: 1e6 },
    description: `${description} \`[least, most]\`.`,
  }) as const;

const workload = {
  type: 'object',
  additionalProperties: false,
  properties: {
    conversations: {
      type: 'object',
      description: 'Conversations whose turns send all earlier ones again; numbers drawn evenly from ranges.',
      additionalProperties: false,
      required: ['turns', 'firstMessageTokens', 'outputTokens'],
      properties: {
        turns: range('Turns.', 1),
        turnGapSeconds: {
          ...range('From one request of a conversation to its next, whether or not the answer has come.'),
          default: [2, 3],
        },
        firstMessageTokens: range('Tokens of the first message.', 1),
        laterMessageTokens: { ...range('Tokens of each later message.'), default: [40, 80] },
        outputTokens: range('Tokens of each answer.', 1),
        streamedShare: { ...share('Share of the answers that are streamed.'), default: 1 },
      },
    },
    trace: {
      enum: ['mooncake-conversations', 'mooncake-synthetic', 'azure-conversation', 'azure-code'],
      description: 'Conversations or single requests drawn from a public trace; see `simulator/data`.',
    },
    tokenScale: {
      ...above0(
        'Tokens of the trace for one of ours. Default: 8 for Mooncake (engines have caches to match), 2 for Azure.',
      ),
    },
    arrivals: {
      enum: ['poisson', 'replay', 'servegen-clients'],
      description:
        'When conversations begin: `replay` as in an Azure trace, gaps and bursts included (copies of it, never faster); `servegen-clients` as from the clients of ServeGen’s DeepSeek-R1 service, few large and bursty ones.',
      default: 'poisson',
    },
    mix: {
      type: 'object',
      description: 'Other workloads by name, with their shares of the conversations.',
      additionalProperties: { type: 'number', minimum: 0, maximum: 1e6 },
    },
    hotKeys: {
      type: 'object',
      description: 'A part of the conversations sends one of a few keys instead of its own.',
      additionalProperties: false,
      required: ['share', 'keys'],
      properties: {
        share: share('Share of the conversations.'),
        keys: { type: 'integer', minimum: 1, maximum: 1e6, description: 'How many keys they share.' },
      },
    },
  },
} as const;

/** What comes to a frontend. */
const demandKeys = {
  workload: {
    ...id,
    description: 'A key of `workloads`, or one of those that are always there. Default: `chat`.',
  },
  requestsPerSecond: rps('First tries of clients per second; with `day`, their mean.'),
  steps: {
    type: 'array',
    description: 'Other rates from times on.',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['at', 'requestsPerSecond'],
      properties: { at: seconds('When.'), requestsPerSecond: rps('The rate from then on.') },
    },
    default: [],
  },
  day: {
    type: 'object',
    description: 'A sine around the rate, as demand over a day.',
    additionalProperties: false,
    properties: {
      peakToTrough: { type: 'number', minimum: 1, maximum: 100, description: 'Ratio.', default: 2.2 },
      lengthSeconds: { ...above0('Of the day.'), default: 86400 },
      phase: { ...share('Shift, as a region’s clock has.'), default: 0 },
    },
  },
  bursts: {
    type: 'object',
    description: 'Times of much more.',
    additionalProperties: false,
    required: ['times', 'everySeconds', 'forSeconds'],
    properties: {
      times: above0('Factor.'),
      everySeconds: above0('From the beginning of one to that of the next.'),
      forSeconds: above0('How long each lasts.'),
      from: { ...seconds('When the first one begins.'), default: 0 },
    },
  },
  expectedRequestsPerSecond: rps(
    'What operators expected before anything was measured. Default: the rate at the beginning.',
  ),
} as const;

const demand = {
  type: 'object',
  additionalProperties: false,
  required: ['requestsPerSecond'],
  properties: demandKeys,
} as const;

const frontend = {
  type: 'object',
  additionalProperties: false,
  required: ['id'],
  properties: {
    id: { ...id, description: 'Name.' },
    region: { ...id, description: 'Where it is. Default: a region of its own, named after it.' },
    ...demandKeys,
    pools: {
      type: 'object',
      description:
        'With a `config` of several pools: what comes for each, by its id. Default: what the configuration expects.',
      additionalProperties: demand,
    },
    envoys: {
      type: 'integer',
      minimum: 1,
      maximum: 64,
      description:
        'Proxies that share its requests: each try of a client comes to any of them, and each knows only what came to itself.',
      default: 1,
    },
    needs: {
      type: 'object',
      description: 'Shares of its conversations that carry a need, by its name.',
      additionalProperties: { type: 'number', minimum: 0, maximum: 1 },
      default: {},
    },
    priorities: {
      type: 'object',
      description:
        'Shares of its conversations that have a priority, by its name; among those with needs as among the others.',
      additionalProperties: { type: 'number', minimum: 0, maximum: 1 },
      default: {},
    },
  },
} as const;

const engine = {
  type: 'object',
  additionalProperties: false,
  required: ['id'],
  properties: {
    id: { ...id, description: 'Name.' },
    kind: {
      ...id,
      description:
        'A kind of simulated engine. Default, with `config`: one that behaves as the engine’s profile says.',
    },
    region: { ...id, description: 'Where it is. Default: a region of its own, named after it.' },
    replicas: { type: 'integer', minimum: 1, maximum: 64, description: 'How many there are.', default: 1 },
    hostCache: {
      type: 'boolean',
      description:
        'Cached blocks that leave the card’s memory come back from 16 times as much of the host’s, for free.',
      default: false,
    },
    profile: {
      ...id,
      description:
        'A file in `simulator/profiles`, made by `wardrop fit` of a benchmark of the kind. Default: the kind.',
    },
    believedSlowness: {
      ...above0(
        'What operators believe of it is wrong by this factor, whatever the policy: with 0.7 they take it for 30 % faster than it is.',
      ),
      default: 1,
    },
    labels: {
      type: 'object',
      description: 'Labels, for needs.',
      additionalProperties: { type: 'string' },
      default: {},
    },
  },
} as const;

const fault = {
  type: 'object',
  additionalProperties: false,
  required: ['kind', 'from'],
  properties: {
    kind: {
      enum: [
        'engine-down',
        'slow-engine',
        'region-cut',
        'control-down',
        'frontend-silent',
        'stale-signals',
        'frozen-signals',
      ],
      description:
        '`engine-down`: it loses its cache and all it was answering. `slow-engine`: every step takes `slowness` times as long. `region-cut`: no packet crosses the border of `region`; the control server is outside. `control-down`: nothing is heard of and nothing comes from it. `frontend-silent`: the same for `frontend` alone, whose requests go on. `stale-signals`: all signals come `extraDelaySeconds` later. `frozen-signals`: they show again and again what they showed last.',
    },
    from: seconds('When it begins.'),
    until: seconds('When it is over. Default: never.'),
    engine: { ...replicaId, description: 'Which one: all of its replicas, or one as `a/0`.' },
    region: { ...id, description: 'Which one.' },
    frontend: { ...id, description: 'Which one.' },
    slowness: { ...above0('Factor.'), default: 1.5 },
    extraDelaySeconds: { ...above0('Seconds.'), default: 30 },
  },
} as const;

const assertion = {
  type: 'object',
  additionalProperties: false,
  required: ['policy', 'measure'],
  properties: {
    policy: { ...id, description: 'Of which policy.' },
    measure: { enum: MEASURE_NAMES, description: 'Mean over seeds of this measure.' },
    class: {
      ...text,
      description:
        'Of this class alone: a need, a priority, both as `eu-only urgent`, or `none`. For `meanE2eMs`, `p99E2eMs`, `goodput`, `shedShare` and `failedShare`.',
    },
    atLeast: { type: 'number', description: 'Bound.' },
    atMost: { type: 'number', description: 'Bound.' },
    timesThatOf: { ...id, description: 'The bounds are multiples of what this policy has.' },
    beyondThatOf: { ...id, description: 'The bounds are for the difference to what this policy has.' },
  },
} as const;

const slo = {
  ttftSeconds: above0('To the first token.'),
  e2eSeconds: above0('To the complete answer.'),
} as const;

const list = <T extends object>(items: T, description: string) =>
  ({ type: 'array', items, description }) as const;

export const scenarioSchema = {
  type: 'object',
  additionalProperties: false,
  required: ['about', 'seconds'],
  properties: {
    about: { ...text, description: 'One sentence: what happens, and what it is to show.' },
    config: {
      ...file,
      description:
        'A Wardrop configuration with frontends, engines, network and profiles, instead of those here. Relative to this file. `engines` may then say what kind some of them are.',
    },
    frontends: list(frontend, 'Where requests come from.'),
    engines: list(engine, 'What serves them.'),
    network: {
      type: 'object',
      additionalProperties: false,
      description: 'Round trips. Default: 0 ms.',
      properties: {
        rttMs: {
          type: 'object',
          description: 'Milliseconds by frontend, then engine.',
          additionalProperties: {
            type: 'object',
            additionalProperties: { type: 'number', minimum: 0, maximum: 60000 },
          },
        },
        regions: {
          enum: ['azure'],
          description:
            'Medians between Azure’s regions, which `region` names by its names without spaces, as `EastUS`.',
        },
      },
    },
    workloads: {
      type: 'object',
      description: 'What requests are like, by name.',
      propertyNames: id,
      additionalProperties: workload,
      default: {},
    },
    needs: {
      type: 'object',
      description: 'Labels that an engine must have for a need, by its name.',
      propertyNames: id,
      additionalProperties: { type: 'object', additionalProperties: { type: 'string' } },
      default: {},
    },
    priorities: {
      type: 'object',
      description:
        'Priorities by name; larger is more important, and conversations of none of these have 0. Only Wardrop makes a difference between them.',
      propertyNames: id,
      additionalProperties: { type: 'integer', minimum: -100, maximum: 100 },
      default: {},
    },
    warmupSeconds: { ...seconds('Not measured.'), default: 30 },
    seconds: above0('Measured after that.'),
    settledFrom: seconds(
      'Oscillation is measured from then on: nothing outside changes any more. Default: the end of the warm-up.',
    ),
    slo: {
      type: 'object',
      additionalProperties: false,
      description: 'What a request must meet to count for goodput.',
      properties: {
        ttftSeconds: above0(
          'To the first token. Default: 0.5; with `config` five times what the pool’s slowest engine takes that is idle.',
        ),
        e2eSeconds: above0('To the complete answer. Default: 2; with `config` three times.'),
        pools: {
          type: 'object',
          description: 'Other times for pools, by their ids; without `config`, by a need or `none`.',
          additionalProperties: { type: 'object', additionalProperties: false, properties: slo },
          default: {},
        },
      },
      default: {},
    },
    client: {
      type: 'object',
      additionalProperties: false,
      description: 'What clients do that get no answer.',
      properties: {
        timeoutSeconds: above0(
          'They leave when an answer is not complete by then. Default: 10; with `config` 120.',
        ),
        retries: {
          type: 'integer',
          minimum: 0,
          maximum: 20,
          description:
            'Further tries after 0.5 s doubled each time up to 8 s, less up to a quarter, or when `Retry-After` says: OpenAI’s SDKs.',
          default: 2,
        },
      },
      default: {},
    },
    signals: {
      type: 'object',
      additionalProperties: false,
      description: 'When policies hear of what happens; the same for all.',
      properties: {
        periodSeconds: { ...above0('Between two reports.'), default: 1 },
        delaySeconds: {
          ...seconds('From the end of a period until what follows from it is in force.'),
          default: 1,
        },
      },
      default: {},
    },
    faults: { ...list(fault, 'What goes wrong.'), default: [] },
    seeds: {
      type: 'integer',
      minimum: 1,
      maximum: 1000,
      description: 'Runs with other requests, unless `--seeds` says otherwise.',
    },
    policies: {
      type: 'array',
      items: id,
      description: 'What is tried, unless `--policies` says otherwise.',
    },
    assertions: {
      ...list(assertion, 'What must come out; checked when the scenario runs in its whole length.'),
      default: [],
    },
  },
} as const;

export type ScenarioFile = FromSchema<typeof scenarioSchema>;
export type DemandEntry = FromSchema<typeof demand>;
export type FrontendEntry = FromSchema<typeof frontend>;
export type EngineEntry = FromSchema<typeof engine>;
export type WorkloadEntry = FromSchema<typeof workload>;
export type FaultEntry = FromSchema<typeof fault>;
export type AssertionEntry = FromSchema<typeof assertion>;
