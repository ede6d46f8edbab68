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

export const demand = {
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
