import { expect } from 'vitest';
import { SotwClient } from '../clients.js';
import type { Scenario } from './scenario.js';

export const subscriptionScenarios: readonly Scenario[] = [
  {
    rule: 'Basic Protocol Overview',
    name: 'a wildcard subscription gets everything once, and nothing after the ACK',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      const { resources } = await client.subscribe('cds');
      expect(resources).toEqual({ a: '1', b: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Resource Types: full state of Listener and Cluster',
    name: 'a change or an addition sends all clusters, unchanged ones included',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('cds');
      server.publish({ cds: { a: '1', b: '2' } });
      expect((await client.take('cds')).resources).toEqual({ a: '1', b: '2' });
      server.publish({ cds: { a: '1', b: '2', c: '1' } });
      expect((await client.take('cds')).resources).toEqual({ a: '1', b: '2', c: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Deleting resources',
    name: 'removing a cluster sends those that remain; removing the last sends an empty response',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('cds');
      server.publish({ cds: { a: '1' } });
      expect((await client.take('cds')).resources).toEqual({ a: '1' });
      server.publish({ cds: {} });
      expect((await client.take('cds')).resources).toEqual({});
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'a named subscription gets those names only',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1', c: '1' }, eds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      expect((await client.subscribe('cds', ['a', 'c'])).resources).toEqual({ a: '1', c: '1' });
      expect((await client.subscribe('eds', ['b'])).resources).toEqual({ b: '1' });
      server.publish({ cds: { a: '1', b: '2', c: '1' }, eds: { a: '2', b: '1' } });
      await client.silence();
    },
  },
  {
    rule: 'Resource Types: full state of Listener and Cluster',
    name: 'a change of one named cluster sends all subscribed ones',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1', c: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('cds', ['a', 'b']);
      server.publish({ cds: { a: '1', b: '2', c: '1' } });
      expect((await client.take('cds', ['a', 'b'])).resources).toEqual({ a: '1', b: '2' });
    },
  },
  {
    rule: 'Resource Types: other types send only what changed',
    name: 'a change of one assignment sends that one',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' }, rds: { r: '1', s: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('eds', ['a', 'b']);
      await client.subscribe('rds', ['r', 's']);
      server.publish({ eds: { a: '1', b: '2' }, rds: { r: '1', s: '1' } });
      expect((await client.take('eds', ['a', 'b'])).resources).toEqual({ b: '2' });
      server.publish({ eds: { a: '1', b: '2' }, rds: { r: '2', s: '1' } });
      expect((await client.take('rds', ['r', 's'])).resources).toEqual({ r: '2' });
      await client.silence();
    },
  },
  {
    rule: 'Knowing When a Requested Resource Does Not Exist',
    name: 'a missing name holds nothing back, and is sent when it appears',
    async run(server) {
      server.publish({ eds: { a: '1' }, cds: { a: '1' } });
      const client = new SotwClient(server);
      expect((await client.subscribe('eds', ['a', 'x'])).resources).toEqual({ a: '1' });
      expect((await client.subscribe('cds', ['x'])).resources).toEqual({});
      server.publish({ eds: { a: '1', x: '1' }, cds: { a: '1', x: '1' } });
      expect((await client.take('cds', ['x'])).resources).toEqual({ x: '1' });
      expect((await client.take('eds', ['a', 'x'])).resources).toEqual({ x: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Deleting resources',
    name: 'an assignment that vanishes causes no message, and is sent again when it comes back unchanged',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('eds', ['a']);
      server.publish({ eds: {} });
      await client.silence();
      server.publish({ eds: { a: '1' } });
      expect((await client.take('eds', ['a'])).resources).toEqual({ a: '1' });
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'dropped names cause no more messages, and a later re-subscription is answered',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      const { nonce, version } = await client.subscribe('eds', ['a', 'b']);
      const again = (resourceNames: string[]) =>
        client.request('eds', { resourceNames, responseNonce: nonce, versionInfo: version });
      again(['b']);
      await client.silence();
      server.publish({ eds: { a: '2', b: '1' } });
      await client.silence();
      again(['a', 'b']);
      expect((await client.take('eds', ['a', 'b'])).resources).toEqual({ a: '2' });
      await client.silence();
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'an empty list after names means nothing at all',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server);
      const { nonce } = await client.subscribe('cds', ['a']);
      client.request('cds', { resourceNames: [], responseNonce: nonce });
      await client.silence();
      server.publish({ cds: { a: '2', b: '1' } });
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'nothing, then * and a name, then the name, then nothing again: everything, the rest, one, none',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      const { nonce } = await client.subscribe('cds');
      client.request('cds', { resourceNames: ['*', 'a'], responseNonce: nonce });
      const { nonce: second } = await client.take('cds', ['*', 'a']);
      client.request('cds', { resourceNames: ['a'], responseNonce: second });
      await client.silence();
      server.publish({ cds: { a: '1', b: '2' } });
      await client.silence();
      server.publish({ cds: { a: '2', b: '2' } });
      const third = await client.expect('cds');
      expect(third.resources).toEqual({ a: '2' });
      client.ack(third, []);
      await client.silence();
      server.publish({ cds: { a: '3', b: '3' } });
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'an explicit * asks for everything, also of types without a default wildcard',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      expect((await client.subscribe('eds', ['*'])).resources).toEqual({ a: '1', b: '1' });
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'an empty first request of a type that has no default wildcard asks for nothing',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new SotwClient(server);
      client.request('eds');
      await client.silence();
    },
  },
];
