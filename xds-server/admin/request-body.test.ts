import { describe, expect, it } from 'vitest';
import { readOperatorRequest } from './operator-request.js';
import { readChanges } from './what-if-request.js';

describe('bodies of requests to the API', () => {
  it('are refused with the place and the name of what is wrong', () => {
    expect(() => readChanges({ demnd: [] })).toThrow(
      'the body is no list of changes: / must NOT have additional properties: demnd',
    );
    expect(() => readChanges({ demand: [{ factor: 2 }] })).toThrow(
      "/demand/0 must have required property 'frontendId'",
    );
    expect(() => readOperatorRequest({ action: 'explode', target: 'b' })).toThrow(
      'the body is no operator action: /action must be equal to one of the allowed values: drain, undrain',
    );
  });

  it('have to say that they are JSON', () => {
    expect(() => readChanges(undefined)).toThrow('send JSON, with content-type: application/json');
  });

  it('get defaults', () => {
    expect(readChanges({})).toEqual({ without: [], demand: [] });
  });
});
