import { id, poolId, share } from './scalars.js';

export const policy = {
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
