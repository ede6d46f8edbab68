import { id } from './scalars.js';

const seconds = (description: string) =>
  ({ type: 'number', minimum: 0, maximum: 3600, description, default: 0 }) as const;

export const profiles = {
  type: 'object',
  description:
    'Latency and work of each kind of engine, by profile id. `wardrop fit` writes them from benchmarks.',
  propertyNames: id,
  additionalProperties: {
    type: 'object',
    description: 'Give `ttft` and `tbot`, and either `work` or `requestsPerSecond`.',
    additionalProperties: false,
    properties: {
      requestsPerSecond: {
        type: 'number',
        minimum: 1e-4,
        maximum: 1e6,
        description:
          'Shorthand: requests per second that one replica can serve, whatever their size. TTFT then only queues (one server with exponential service times), unless `ttft` says otherwise. Without `ttft` or `tbot`, slow engines are not found.',
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
