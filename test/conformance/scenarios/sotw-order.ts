import { expect } from 'vitest';
import { SotwClient } from '../clients.js';
import { everything } from './everything.js';
import type { Scenario } from './scenario.js';

export const orderScenarios: readonly Scenario[] = [
  {
    rule: 'When to send an update',
    name: 'while a response is unanswered no other of its type is sent; then the newest state is',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('eds', ['a']);
      server.publish({ eds: { a: '2' } });
      const second = await client.expect('eds');
      for (let i = 3; i < 20; i++) server.publish({ eds: { a: String(i) } });
      await client.silence();
      client.ack(second, ['a']);
      expect((await client.take('eds', ['a'])).resources).toEqual({ a: '19' });
      await client.silence();
    },
  },
  {
    rule: 'When to send an update',
    name: 'a change that is taken back while a response is unanswered causes none',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('eds', ['a']);
      server.publish({ eds: { a: '2' } });
      const second = await client.expect('eds');
      server.publish({ eds: { a: '3' } });
      server.publish({ eds: { a: '2' } });
      client.ack(second, ['a']);
      await client.silence();
    },
  },
  {
    rule: 'Eventual consistency considerations',
    name: 'one change of everything is sent as clusters, endpoints, listeners, routes, each after the ACK before',
    async run(server) {
      const client = await everything(server, {
        cds: { a: '1' },
        eds: { a: '1' },
        lds: { l: '1' },
        rds: { l: '1' },
      });
      server.publish({ cds: { a: '2' }, eds: { a: '2' }, lds: { l: '2' }, rds: { l: '2' } });
      const clusters = await client.expect('cds');
      // The changed cluster warms, so that its endpoints come along.
      const endpoints = await client.expect('eds');
      await client.silence();
      client.ack(endpoints, ['a']);
      await client.silence();
      client.ack(clusters);
      const listeners = await client.expect('lds');
      const routes = await client.expect('rds');
      client.ack(listeners);
      client.ack(routes, ['l']);
      await client.silence();
    },
  },
  {
    rule: 'Eventual consistency considerations',
    name: 'a replaced cluster: new cluster and endpoints, then the routes, and only then the old cluster goes',
    async run(server) {
      const client = await everything(server, {
        cds: { old: '1' },
        eds: { old: '1' },
        lds: { l: '1' },
        rds: { l: 'to old' },
      });
      server.publish({ cds: { new: '1' }, eds: { new: '1' }, lds: { l: '1' }, rds: { l: 'to new' } });
      const clusters = await client.expect('cds');
      expect(clusters.resources).toEqual({ old: '1', new: '1' });
      const { nonce } = client.lastOf('eds');
      client.request('eds', { resourceNames: ['old', 'new'], responseNonce: nonce });
      const endpoints = await client.expect('eds');
      expect(endpoints.resources).toEqual({ new: '1' });
      client.ack(clusters);
      await client.silence();
      client.ack(endpoints, ['old', 'new']);
      const routes = await client.expect('rds');
      expect(routes.resources).toEqual({ l: 'to new' });
      await client.silence();
      client.ack(routes, ['l']);
      const last = await client.take('cds');
      expect(last.resources).toEqual({ new: '1' });
      expect(last.version).not.toBe(clusters.version);
      await client.silence();
    },
  },
  {
    rule: 'Eventual consistency considerations',
    name: 'rejected routes keep the clusters that they may name',
    async run(server) {
      const client = await everything(server, {
        cds: { old: '1' },
        eds: { old: '1' },
        lds: { l: '1' },
        rds: { l: 'to old' },
      });
      server.publish({ cds: {}, eds: {}, lds: { l: '1' }, rds: { l: 'bad' } });
      client.nack(await client.expect('rds'), ['l']);
      await client.silence();
      server.publish({ cds: {}, eds: {}, lds: { l: '1' }, rds: { l: 'good' } });
      await client.take('rds', ['l']);
      expect((await client.take('cds')).resources).toEqual({});
    },
  },
  {
    rule: 'Resource warming',
    name: 'a changed cluster is followed by its endpoints although they did not change',
    async run(server) {
      const client = await everything(server, { cds: { c1: '1', c2: '1' }, eds: { c1: 'e1', c2: 'e1' } });
      server.publish({ cds: { c1: '2', c2: '1' }, eds: { c1: 'e1', c2: 'e1' } });
      await client.take('cds');
      expect((await client.take('eds', ['c1', 'c2'])).resources).toEqual({ c1: 'e1' });
      await client.silence();
    },
  },
  {
    rule: 'Resource warming',
    name: 'a cluster that went and came back is followed by its endpoints',
    async run(server) {
      const state = { cds: { c1: '1' }, eds: { c1: 'e1' } };
      const client = await everything(server, state);
      const { nonce } = client.lastOf('eds');
      server.publish({ cds: {}, eds: {} });
      await client.take('cds');
      client.request('eds', { resourceNames: [], responseNonce: nonce });
      await client.silence();
      server.publish(state);
      await client.take('cds');
      client.request('eds', { resourceNames: ['c1'], responseNonce: nonce });
      expect((await client.take('eds', ['c1'])).resources).toEqual({ c1: 'e1' });
      await client.silence();
    },
  },
  {
    rule: 'Resource warming',
    name: 'a changed listener is followed by its routes although they did not change',
    async run(server) {
      const client = await everything(server, { lds: { l: '1' }, rds: { l: 'r1' } });
      server.publish({ lds: { l: '2' }, rds: { l: 'r1' } });
      await client.take('lds');
      expect((await client.take('rds', ['l'])).resources).toEqual({ l: 'r1' });
      await client.silence();
    },
  },
  {
    rule: 'Resource Types: runtime layers are named',
    name: 'a runtime layer is answered by name at once, and a change of it is sent after the ACK of what came before',
    async run(server) {
      server.publish({ cds: { a: '1' }, rtds: { layer: '1', other: '1' } });
      const client = new SotwClient(server);
      expect((await client.subscribe('rtds', ['layer'])).resources).toEqual({ layer: '1' });
      client.request('cds');
      const clusters = await client.expect('cds');
      await client.silence();
      server.publish({ cds: { a: '1' }, rtds: { layer: '2', other: '2' } });
      // A change waits until the client has answered what came before.
      await client.silence();
      client.ack(clusters);
      expect((await client.take('rtds', ['layer'])).resources).toEqual({ layer: '2' });
      await client.silence();
    },
  },
  {
    rule: 'Eventual consistency considerations',
    name: 'what a client newly asks for is answered at once, whatever else is unanswered',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: '1' }, lds: { l: '1' }, rds: { l: '1' } });
      const client = new SotwClient(server);
      client.request('cds');
      client.request('lds');
      client.request('eds', { resourceNames: ['a'] });
      client.request('rds', { resourceNames: ['l'] });
      await client.expect('cds');
      await client.expect('lds');
      await client.expect('eds');
      await client.expect('rds');
    },
  },
];
