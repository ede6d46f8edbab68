import { id, listenAddress, region } from './scalars.js';

export const frontends = {
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
        ...listenAddress,
        description: '`ip:port` its Envoys listen on, unless an Envoy’s node metadata says otherwise.',
        default: '0.0.0.0:10000',
      },
    },
  },
} as const;
