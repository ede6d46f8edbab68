import type { ErrorObject, ValidateFunction } from 'ajv';
import { WardropError } from '../../errors.js';

/**
 * The body of a request to the API, with defaults filled in.
 *
 * @param what the schema describes, such as `operator action`
 * @throws {WardropError} WARDROP_QUERY_INVALID
 */
export function readBody<T>(check: ValidateFunction<T>, what: string, body: unknown): T {
  // Express leaves undefined what is not said to be JSON.
  if (body === undefined) {
    throw new WardropError('WARDROP_QUERY_INVALID', 'send JSON, with content-type: application/json');
  }
  if (check(body)) return body;
  throw new WardropError('WARDROP_QUERY_INVALID', `the body is no ${what}: ${describe(check.errors![0]!)}`);
}

function describe({ keyword, instancePath, message, params }: ErrorObject): string {
  const at = instancePath === '' ? '' : `${instancePath}: `;
  switch (keyword) {
    case 'additionalProperties':
      return `${at}unknown key ${JSON.stringify(params.additionalProperty)}`;
    case 'required':
      return `${at}missing key ${JSON.stringify(params.missingProperty)}`;
    case 'enum':
      return `${at}must be one of ${params.allowedValues.join(', ')}`;
    default:
      return `${at}${message}`;
  }
}
