import { describe, expect, it } from 'vitest';
import { encodeFilterConfig, type FilterConfig } from './filter-config.js';

describe('the filter configuration', () => {
  it('has one name=value a line and leaves out what is not set', () => {
    expect(encodeFilterConfig({ frontendId: 'west' })).toBe('frontendId=west\n');
    expect(
      encodeFilterConfig({
        frontendId: 'west',
        syncToken: 's=3cret',
        syncPeriodMs: 50,
        startupHoldMs: 0,
        tenantHeader: 'x-tenant',
        readBodies: true,
        maxBodyBytes: 65536,
        nativeSteering: true,
        snapshot: new Uint8Array([255, 0]),
      }),
    ).toBe(
      'frontendId=west\nsyncToken=s=3cret\nsyncPeriodMs=50\nstartupHoldMs=0\ntenantHeader=x-tenant\nreadBodies=true\nmaxBodyBytes=65536\nnativeSteering=true\nsnapshot=/wA=\n',
    );
  });

  it.each<[string, Partial<FilterConfig>]>([
    ['frontendId', { frontendId: '' }],
    ['frontendId', { frontendId: 'west\nsyncToken=x' }],
    ['syncToken', { syncToken: 'two words' }],
    ['syncPeriodMs', { syncPeriodMs: 9 }],
    ['syncPeriodMs', { syncPeriodMs: 100.5 }],
    ['startupHoldMs', { startupHoldMs: 60_001 }],
    ['tenantHeader', { tenantHeader: 'X-Tenant' }],
    ['maxBodyBytes', { maxBodyBytes: 0 }],
  ])('is refused when %s is out of range: %j', (name, change) => {
    expect(() => encodeFilterConfig({ frontendId: 'west', ...change })).toThrow(`filter ${name}: `);
  });
});
