import { expect, it } from 'vitest';
import { filterOptions } from './filter-options.js';

it('a filter that reads bodies has more buffer than the longest, and a variant that reads none', () => {
  const settings = { readBodies: true, maxBodyBytes: 2_000_000, tenantHeader: 'x-tenant' };
  const options = filterOptions(settings, 'west', 'secret');
  expect(options.filterConfig.split('\n')).toEqual([
    'frontendId=west',
    'syncToken=secret',
    'tenantHeader=x-tenant',
    'readBodies=true',
    'maxBodyBytes=2000000',
    '',
  ]);
  expect(options.withoutBodies).toBe('frontendId=west\nsyncToken=secret\ntenantHeader=x-tenant\n');
  expect(options.bufferBytes).toBeGreaterThan(2_000_000);
});

it('a filter that reads no bodies leaves the buffers of Envoy alone', () => {
  expect(filterOptions({ readBodies: false, maxBodyBytes: 2_000_000 }, 'west', undefined)).toEqual({
    filterConfig: 'frontendId=west\n',
  });
});
