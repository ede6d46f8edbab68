import { Ajv } from 'ajv';
import { OPERATOR_ACTIONS } from '../../fleet/operations.js';
import type { OperatorRequest } from '../../signals/operator-orders.js';
import { readBody } from './request-body.js';

const MOST_SECONDS = 30 * 86_400;

const check = new Ajv({ strict: true, useDefaults: true }).compile<OperatorRequest>({
  type: 'object',
  additionalProperties: false,
  required: ['action', 'target'],
  properties: {
    action: { type: 'string', enum: [...OPERATOR_ACTIONS] },
    target: { type: 'string', maxLength: 300 },
    forSeconds: { type: 'number', exclusiveMinimum: 0, maximum: MOST_SECONDS },
    overSeconds: { type: 'number', minimum: 0, maximum: 3_600 },
    by: { type: 'string', pattern: '^[\\x20-\\x7e]{0,100}$', default: 'unknown' },
  },
});

/**
 * The body of `POST /v1/operations`.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function readOperatorRequest(body: unknown): OperatorRequest {
  return readBody(check, 'operator action', body);
}
