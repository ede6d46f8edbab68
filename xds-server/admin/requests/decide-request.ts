import { Ajv } from 'ajv';
import type { ClientRequest } from '../../control/questions/filter-run.js';
import { readBody } from './request-body.js';

/** A request, and the frontend that it comes to. */
export interface DecideRequest extends ClientRequest {
  readonly frontend: string;
}

interface Sent {
  readonly frontend: string;
  readonly method: string;
  readonly path: string;
  readonly headers: readonly [name: string, value: string][];
  readonly body: string;
  readonly bodyEncoding: 'utf8' | 'base64';
}

/** As many as Envoy takes. */
const MOST_HEADERS = 100;

const check = new Ajv({ strict: true, strictTuples: false, useDefaults: true }).compile<Sent>({
  type: 'object',
  additionalProperties: false,
  required: ['frontend'],
  properties: {
    frontend: { type: 'string' },
    method: { type: 'string', pattern: '^[A-Z]{1,20}$', default: 'POST' },
    path: { type: 'string', pattern: '^/[\\x21-\\x7e]*$', maxLength: 8192, default: '/v1/chat/completions' },
    headers: {
      type: 'array',
      default: [],
      maxItems: MOST_HEADERS,
      items: {
        type: 'array',
        minItems: 2,
        maxItems: 2,
        items: [
          { type: 'string', pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" },
          { type: 'string', pattern: '^[^\\0\\r\\n]*$' },
        ],
      },
    },
    body: { type: 'string', default: '' },
    bodyEncoding: { type: 'string', enum: ['utf8', 'base64'], default: 'utf8' },
  },
});

/**
 * The body of `POST /v1/decide`.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function readDecideRequest(json: unknown): DecideRequest {
  const { frontend, method, path, headers, body, bodyEncoding } = readBody(check, 'request to decide', json);
  return {
    frontend,
    method,
    path,
    headers: headers.map(([name, value]) => [name.toLowerCase(), value]),
    body: Buffer.from(body, bodyEncoding),
  };
}
