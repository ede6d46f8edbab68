export const timeouts = {
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
