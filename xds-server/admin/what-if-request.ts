import { Ajv } from 'ajv';
import type { Changes } from '../control/what-if.js';
import { WardropError } from '../errors.js';

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
  if (check(body)) return body;
  const { instancePath, message } = check.errors![0]!;
  throw new WardropError(
    'WARDROP_QUERY_INVALID',
    `the body is no list of changes: ${instancePath || '/'} ${message}`,
  );
}
