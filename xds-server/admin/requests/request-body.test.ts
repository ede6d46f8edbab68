import { describe, expect, it } from 'vitest';
import { readOperatorRequest } from './operator-request.js';
import { readChanges } from './what-if-request.js';

describe('bodies of requests to the API', () => {
  it('are refused with the place and the name of what is wrong', () => {
    expect(() => readChanges({ demnd: [] })).toThrow('the body is no list of changes: unknown key "demnd"');
    expect(() => readChanges({ demand: [{ factor: 2 }] })).toThrow('/demand/0: missing key "frontendId"');
    expect(() => readOperatorRequest({ action: 'explode', target: 'b' })).toThrow(
      'the body is no operator action: /action: must be one of drain, undrain',
    );
  });

  it('have to say that they are JSON', () => {
    expect(() => readChanges(undefined)).toThrow('send JSON, with content-type: application/json');
  });

  it('get defaults', () => {
    expect(readChanges({})).toEqual({ without: [], demand: [] });
  });
});
