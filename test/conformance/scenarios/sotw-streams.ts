import { expect } from 'vitest';
import { SotwClient } from '../clients.js';
import type { Scenario } from './scenario.js';
import { statuses } from './statuses.js';

export const streamScenarios: readonly Scenario[] = [
  {
    rule: 'Aggregated Discovery Service',
    name: 'types on one stream have their own versions, nonces and ACKs',
    async run(server) {
      server.publish({ cds: { a: '1' }, lds: { l: '1' } });
      const client = new SotwClient(server);
      client.request('cds');
      const clusters = await client.expect('cds');
      client.request('lds');
      const listeners = await client.expect('lds');
      expect(listeners.nonce).not.toBe(clusters.nonce);
      client.nack(clusters);
      client.ack(listeners);
      const [node] = server.nodes();
      await client.silence();
      expect(statuses(server)).toMatchObject({ cds: 'rejected', lds: 'synced' });
      expect(node?.nodeId).toBe('n1');
    },
  },
  {
    rule: 'Node identifier',
    name: 'the node comes with the first request only; another id on the same stream ends it',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server, 'n1');
      const { nonce } = await client.subscribe('cds');
      client.request('cds', { responseNonce: nonce, node: named('n1') });
      client.request('cds', { responseNonce: nonce, node: named('') });
      await client.silence();
      client.request('cds', { responseNonce: nonce, node: named('n2') });
      expect((await client.expectEnd()).message).toContain('"n2" on the stream of "n1"');
    },
  },
  {
    rule: 'Node identifier',
    name: 'a first request without a node ends the stream',
    async run(server) {
      const client = new SotwClient(server, '');
      client.request('cds');
      expect((await client.expectEnd()).message).toContain('without node.id');
    },
  },
  {
    rule: 'Aggregated Discovery Service',
    name: 'a request without a type ends the stream; an unknown type is left unanswered',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server);
      client.request('unknown', { resourceNames: ['x'] });
      await client.silence();
      expect((await client.subscribe('cds')).resources).toEqual({ a: '1' });
      client.request('');
      expect((await client.expectEnd()).message).toContain('without type_url');
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'a client that reconnects with the current version of everything is sent nothing',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: '1' } });
      const before = new SotwClient(server);
      const { version } = await before.subscribe('cds');
      const endpoints = await before.subscribe('eds', ['a']);
      await before.close();
      const after = new SotwClient(server);
      after.request('cds', { versionInfo: version });
      await after.silence();
      // Of named types it may have asked for others before, so that its version proves nothing.
      after.request('eds', { versionInfo: endpoints.version, resourceNames: ['a'] });
      expect((await after.take('eds', ['a'])).resources).toEqual({ a: '1' });
      expect(statuses(server)).toMatchObject({ cds: 'synced' });
      server.publish({ cds: { a: '2' }, eds: { a: '1' } });
      expect((await after.take('cds')).resources).toEqual({ a: '2' });
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'a client that reconnects with an older version is sent the current one',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const before = new SotwClient(server);
      const { version } = await before.subscribe('cds');
      await before.close();
      server.publish({ cds: { a: '2' } });
      const after = new SotwClient(server);
      after.request('cds', { versionInfo: version });
      expect((await after.take('cds')).resources).toEqual({ a: '2' });
    },
  },
  {
    rule: 'Nonce',
    name: 'a first request that carries a nonce of an earlier stream is answered',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new SotwClient(server);
      client.request('eds', { resourceNames: ['a'], responseNonce: 'from-another-stream' });
      expect((await client.take('eds', ['a'])).resources).toEqual({ a: '1' });
    },
  },
  {
    rule: 'When to send an update',
    name: 'a client that comes before the first publication waits, and is then answered',
    async run(server) {
      const client = new SotwClient(server);
      client.request('cds');
      client.request('eds', { resourceNames: ['a'] });
      server.publish({ cds: { a: '1' }, eds: { a: '1' } });
      expect((await client.take('cds')).resources).toEqual({ a: '1' });
      expect((await client.take('eds', ['a'])).resources).toEqual({ a: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'a closed stream is forgotten',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('cds');
      await client.silence();
      expect(server.nodes()).toHaveLength(1);
      await client.close();
      expect(server.nodes()).toHaveLength(0);
      server.publish({ cds: { a: '2' } });
    },
  },
];

function named(id: string) {
  return {
    id,
    cluster: '',
    region: '',
    metadata: {},
    userAgent: '',
    userAgentVersion: '',
  };
}
