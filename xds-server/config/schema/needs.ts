import { headerName, headerValue, id } from './scalars.js';

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

export const needs = {
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
          totalTokens: {
            type: 'integer',
            minimum: 0,
            maximum: 4294967295,
            description: 'Prompt and answer, by its `max_tokens` or the like, may have more tokens.',
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

export const classes = {
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
