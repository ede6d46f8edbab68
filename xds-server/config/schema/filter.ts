import { KEY_FIELDS } from '../../../wire/names.js';
import { headerName } from './scalars.js';

export const filter = {
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
