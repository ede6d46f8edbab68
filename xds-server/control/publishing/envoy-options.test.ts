import { expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { envoyOptions } from './envoy-options.js';

const optionsOf = (sections = '') => {
  const text = `frontends: [{id: west, region: r}]\nengines: [{id: e, region: r, models: [m], endpoints: [10.0.0.1:1]}]\n${sections}`;
  return envoyOptions(
    loadConfig('/none/fleet.yaml', () => text),
    'west',
  );
};

it('a filter that reads bodies has more buffer than the longest', () => {
  const { filter, bufferBytes } = optionsOf(
    'filter: {maxBodyBytes: 2000000, tenantHeader: X-Tenant}\nserver: {token: 0123456789abcdef}\n',
  );
  expect(filter).toEqual({
    frontendId: 'west',
    syncToken: '0123456789abcdef',
    tenantHeader: 'x-tenant',
    readBodies: true,
    maxBodyBytes: 2_000_000,
    placement: true,
  });
  expect(bufferBytes).toBeGreaterThan(2_000_000);
});

it('a filter that reads no bodies leaves the buffers of Envoy alone', () => {
  const options = optionsOf('filter: {readBodies: false}\n');
  expect(options.filter).toEqual({ frontendId: 'west', placement: true });
  expect(options).not.toHaveProperty('bufferBytes');
});

it.each([
  ['filter', 'override-host'],
  ['native', 'maglev'],
  ['native-ring-hash', 'ring-hash'],
  ['native-round-robin', 'round-robin'],
])('steering %s is %s in Envoy', (choice, steering) => {
  expect(optionsOf(`steering: ${choice}\n`).steering).toBe(steering);
  expect(optionsOf().steering).toBe('override-host');
});

it('Envoys have a retry budget of their own only when the policy says so', () => {
  expect(optionsOf()).not.toHaveProperty('retryBackstop');
  expect(optionsOf('policy: {retries: {backstop: 0.4}}\n').retryBackstop).toBe(0.4);
});
