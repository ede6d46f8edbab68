import { Ajv } from 'ajv';
import type { Changes } from '../../control/questions/what-if.js';
import { readBody } from './request-body.js';

const id = { type: 'string' };

const check = new Ajv({ strict: true, useDefaults: true }).compile<Changes>({
  type: 'object',
  additionalProperties: false,
  properties: {
    without: { type: 'array', items: id, default: [] },
    demand: {
      type: 'array',
      default: [],
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['frontendId'],
        properties: {
          frontendId: id,
          poolId: id,
          factor: { type: 'number', minimum: 0, maximum: 1000 },
          requestsPerSecond: { type: 'number', minimum: 0, maximum: 1e7 },
        },
      },
    },
  },
});

/**
 * The body of `POST /v1/what-if`.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function readChanges(body: unknown): Changes {
  return readBody(check, 'list of changes', body);
}
