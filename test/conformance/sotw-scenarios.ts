import { expect } from 'vitest';
import { SotwClient } from './clients.js';
import { type TypeName, types } from './messages.js';
import type { Server } from './server.js';

/** A rule of the xDS protocol (Envoy's "xDS REST and gRPC protocol", by heading) and a dialogue that shows it. */
export interface Scenario {
  readonly rule: string;
  readonly name: string;
  run(server: Server): Promise<void>;
}

export const sotwScenarios: readonly Scenario[] = [
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
    rule: 'ACK/NACK and resource type instance version',
    name: 'equal content has an equal version, changed content another',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server);
      const first = await client.subscribe('cds');
      server.publish({ cds: { a: '2' } });
      const second = await client.take('cds');
      server.publish({ cds: { a: '1' } });
      const third = await client.take('cds');
      expect(second.version).not.toBe(first.version);
      expect(third.version).toBe(first.version);
      expect(new Set([first.nonce, second.nonce, third.nonce]).size).toBe(3);
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
  {
    rule: 'When to send an update',
    name: 'publishing the same content again sends nothing',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: '1' }, lds: { l: '1' }, rds: { r: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('cds');
      await client.subscribe('eds', ['a']);
      await client.subscribe('lds');
      await client.subscribe('rds', ['r']);
      server.publish({ cds: { a: '1' }, eds: { a: '1' }, lds: { l: '1' }, rds: { r: '1' } });
      await client.silence();
    },
  },
  {
    rule: 'Nonce',
    name: 'a request with a stale nonce is ignored',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      const first = await client.subscribe('eds', ['a']);
      server.publish({ eds: { a: '2', b: '1' } });
      const second = await client.expect('eds');
      client.request('eds', { resourceNames: ['a', 'b'], responseNonce: first.nonce });
      client.request('eds', { resourceNames: ['a'], responseNonce: first.nonce, error: 'late' });
      await client.silence();
      expect(server.nodes()[0]?.types).toMatchObject(typesOf({ eds: { rejections: 0 } }));
      client.ack(second, ['a', 'b']);
      expect((await client.take('eds', ['a', 'b'])).resources).toEqual({ b: '1' });
    },
  },
  {
    rule: 'Nonce',
    name: 'a request sent before the first response came may still add names',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new SotwClient(server);
      client.request('eds', { resourceNames: ['a'] });
      client.request('eds', { resourceNames: ['a', 'b'] });
      const first = await client.expect('eds');
      expect(first.resources).toEqual({ a: '1' });
      client.ack(first, ['a', 'b']);
      expect((await client.take('eds', ['a', 'b'])).resources).toEqual({ b: '1' });
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'a rejected version is not sent again until content changes, on this stream',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new SotwClient(server, 'n1');
      await client.subscribe('cds');
      server.publish({ cds: { a: 'bad' } });
      const bad = await client.expect('cds');
      client.nack(bad);
      await client.silence();
      server.publish({ cds: { a: 'bad' } });
      await client.silence();
      const other = new SotwClient(server, 'n2');
      expect((await other.subscribe('cds')).resources).toEqual({ a: 'bad' });
      await client.silence();
      server.publish({ cds: { a: '3' } });
      expect((await client.take('cds')).resources).toEqual({ a: '3' });
      expect((await other.take('cds')).resources).toEqual({ a: '3' });
      await client.silence();
      await other.close();
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'a new stream of a node that rejected is offered the same once, and no more after it rejects again',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: 'bad' } });
      for (let i = 0; i < 2; i++) {
        const client = new SotwClient(server, 'n1');
        client.request('eds', { resourceNames: ['a'] });
        client.nack(await client.expect('eds'), ['a']);
        await client.silence();
        expect(statuses(server)).toEqual({ eds: 'rejected' });
        await client.close();
      }
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'the reason of a rejection is kept after a later version was accepted',
    async run(server) {
      server.publish({ cds: { a: 'bad' } });
      const client = new SotwClient(server);
      client.request('cds');
      const bad = await client.expect('cds');
      client.nack(bad, [], 'no such thing');
      await client.silence();
      expect(statuses(server)).toEqual({ cds: 'rejected' });
      server.publish({ cds: { a: '2' } });
      await client.take('cds');
      await client.silence();
      expect(statuses(server)).toEqual({ cds: 'synced' });
      const type = typesOf({
        cds: { rejections: 1, rejection: { version: bad.version, reason: 'no such thing' } },
      });
      expect(server.nodes()[0]?.types).toMatchObject(type);
    },
  },
  {
    rule: 'Client Status Discovery Service',
    name: 'of every resource it is known what the client made of it',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: '1', b: '1' } });
      const client = new SotwClient(server, 'n1');
      await client.subscribe('cds');
      await client.subscribe('eds', ['a', 'b', 'x']);
      await client.silence();
      const statusesOf = () =>
        Object.fromEntries(server.resourcesOf('n1')[types.eds]!.map(({ name, status }) => [name, status]));
      expect(statusesOf()).toEqual({ a: 'synced', b: 'synced', x: 'missing' });
      server.publish({ cds: { a: '1' }, eds: { a: '1', b: '2' } });
      const bad = await client.expect('eds');
      expect(statusesOf()).toEqual({ a: 'synced', b: 'stale', x: 'missing' });
      client.nack(bad, ['a', 'b', 'x']);
      await client.silence();
      expect(statusesOf()).toEqual({ a: 'synced', b: 'rejected', x: 'missing' });
      expect(server.resourcesOf('nobody')).toEqual({});
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'after a rejection of several assignments, all are offered again as soon as one of them changes',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1', c: '1' } });
      const client = new SotwClient(server);
      await client.subscribe('eds', ['a', 'b', 'c']);
      server.publish({ eds: { a: '2', b: 'bad', c: '1' } });
      client.nack(await client.expect('eds'), ['a', 'b', 'c']);
      await client.silence();
      server.publish({ eds: { a: '2', b: 'bad', c: '2' } });
      expect((await client.take('eds', ['a', 'b', 'c'])).resources).toEqual({ c: '2' });
      server.publish({ eds: { a: '2', b: '3', c: '2' } });
      expect((await client.take('eds', ['a', 'b', 'c'])).resources).toEqual({ a: '2', b: '3' });
      await client.silence();
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

class EverythingClient extends SotwClient {
  readonly #last = new Map<string, Awaited<ReturnType<SotwClient['expect']>>>();

  override async expect(type: Parameters<SotwClient['expect']>[0]) {
    const received = await super.expect(type);
    this.#last.set(type, received);
    return received;
  }

  lastOf(type: string) {
    return this.#last.get(type)!;
  }
}

/** A client that has accepted all of this state, as Envoy does: all clusters and listeners, the rest by name. */
async function everything(
  server: Server,
  state: Parameters<Server['publish']>[0],
): Promise<EverythingClient> {
  server.publish(state);
  const client = new EverythingClient(server);
  await client.subscribe('cds');
  if (state.eds) await client.subscribe('eds', Object.keys(state.eds));
  await client.subscribe('lds');
  if (state.rds) await client.subscribe('rds', Object.keys(state.rds));
  await client.silence();
  return client;
}

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

function typesOf(byShortName: Readonly<Record<string, object>>) {
  return Object.fromEntries(
    Object.entries(byShortName).map(([name, fields]) => [types[name as TypeName], fields]),
  );
}

function statuses(server: Server): Record<string, string> {
  const entries = Object.entries(types).flatMap(([name, url]) => {
    const view = server.nodes()[0]?.types[url];
    return view === undefined ? [] : [[name, view.status]];
  });
  return Object.fromEntries(entries);
}
