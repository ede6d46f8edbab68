import { describe, expect, it } from 'vitest';
import { featuresOf, shortcomingsOf } from './envoy-features.js';

const all = ['envoy.wasm.runtime.v8', 'envoy.load_balancing_policies.override_host'];
const envoy = (userAgentVersion: string, extensions: readonly string[] = all) => ({
  id: 'n',
  cluster: '',
  region: '',
  metadata: {},
  userAgent: 'envoy',
  userAgentVersion,
  extensions: new Set(extensions),
});

describe('what an Envoy is given', () => {
  it.each(['1.36.4', '1.38.3', '1.40.0'])('is what is wanted of %s', (version) => {
    expect(featuresOf(envoy(version), 'override-host').steering).toBe('override-host');
    expect(shortcomingsOf(envoy(version), 'override-host')).toEqual([]);
  });

  it('is maglev where override_host is not built in, and the report says what follows', () => {
    const node = envoy('1.40.0', ['envoy.wasm.runtime.v8']);
    expect(featuresOf(node, 'override-host').steering).toBe('maglev');
    expect(shortcomingsOf(node, 'override-host')).toEqual([expect.stringContaining('override_host')]);
    expect(shortcomingsOf(node, 'round-robin')).toEqual([]);
  });

  it('is what is wanted where a node does not list its extensions', () => {
    expect(featuresOf(envoy('1.40.0', []), 'override-host').steering).toBe('override-host');
  });

  it('is no ring hash on 1.38.0, where late endpoints never reach it', () => {
    expect(featuresOf(envoy('1.38.0'), 'ring-hash').steering).toBe('maglev');
    expect(shortcomingsOf(envoy('1.38.0'), 'ring-hash')).toContainEqual(expect.stringContaining('maglev'));
    expect(featuresOf(envoy('1.38.3'), 'ring-hash').steering).toBe('ring-hash');
  });

  it('is a retry budget by interval from 1.39 on', () => {
    expect(featuresOf(envoy('1.38.3'), 'maglev').retryBudgetInterval).toBe(false);
    expect(featuresOf(envoy('1.39.0'), 'maglev').retryBudgetInterval).toBe(true);
    expect(shortcomingsOf(envoy('1.38.3'), 'maglev')).toEqual([expect.stringContaining('retry budget')]);
  });

  it('keeps bodies whole since 1.40, which matters where they are read', () => {
    expect(featuresOf(envoy('1.39.2'), 'override-host').wholeBodies).toBe(false);
    expect(featuresOf(envoy('1.40.0'), 'override-host').wholeBodies).toBe(true);
    expect(shortcomingsOf(envoy('1.39.2'), 'override-host', true)).toEqual([
      expect.stringContaining('its filter reads none'),
    ]);
    expect(shortcomingsOf(envoy('1.39.2'), 'override-host')).toEqual([]);
  });

  it('is reported where the Envoy is too old or has no WebAssembly', () => {
    expect(shortcomingsOf(envoy('1.35.9'), 'override-host')).toEqual([
      expect.stringContaining('older than 1.36'),
    ]);
    expect(shortcomingsOf(envoy('1.40.0', all.slice(1)), 'override-host')).toEqual([
      expect.stringContaining('reject the listener'),
    ]);
  });

  it('is anything for a client that is no Envoy', () => {
    const node = { ...envoy('1.14.0', []), userAgent: 'gRPC' };
    expect(featuresOf(node, 'ring-hash')).toEqual({
      steering: 'ring-hash',
      retryBudgetInterval: true,
      wholeBodies: true,
    });
    expect(shortcomingsOf(node, 'override-host')).toEqual([]);
  });
});
