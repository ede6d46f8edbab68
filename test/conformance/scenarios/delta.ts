import { expect } from 'vitest';
import { DeltaClient } from '../clients.js';
import type { Received } from '../messages.js';
import type { Scenario } from './scenario.js';

export const deltaScenarios: readonly Scenario[] = [
  {
    rule: 'Incremental xDS',
    name: 'a name subscribed later is sent alone, once',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      expect((await client.subscribe('eds', ['a'])).resources).toEqual({ a: '1' });
      expect((await client.subscribe('eds', ['b'])).resources).toEqual({ b: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Incremental xDS',
    name: 'only the changed resource is sent, with a new version and nonce; equal content keeps its version',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      const first = await client.subscribe('cds');
      expect(first.resources).toEqual({ a: '1', b: '1' });
      server.publish({ cds: { a: '1', b: '2' } });
      const second = await client.take('cds');
      expect(second.resources).toEqual({ b: '2' });
      expect(second.removed).toEqual([]);
      expect(second.nonce).not.toBe(first.nonce);
      server.publish({ cds: { a: '1', b: '1' } });
      expect((await client.take('cds')).versions).toEqual({ b: first.versions.b });
      await client.silence();
    },
  },
  {
    rule: 'Knowing When a Requested Resource Does Not Exist',
    name: 'a missing name is reported as removed, and sent when it appears',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new DeltaClient(server);
      const first = await client.subscribe('eds', ['a', 'x']);
      expect(first.resources).toEqual({ a: '1' });
      expect(first.removed).toEqual(['x']);
      server.publish({ eds: { a: '1', x: '1' } });
      expect((await client.take('eds')).resources).toEqual({ x: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Deleting resources',
    name: 'a removal is told once, and the resource is sent when it comes back unchanged',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('eds', ['a', 'b']);
      server.publish({ eds: { b: '1' } });
      const removal = await client.take('eds');
      expect(changesOf(removal)).toEqual({ resources: {}, removed: ['a'] });
      await client.silence();
      server.publish({ eds: { a: '1', b: '1' } });
      expect((await client.take('eds')).resources).toEqual({ a: '1' });
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'an unsubscribed name is silent, and answered when subscribed again',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('eds', ['a', 'b']);
      client.request('eds', { unsubscribe: ['a'] });
      await client.silence();
      server.publish({ eds: { a: '2', b: '1' } });
      await client.silence();
      server.publish({ eds: { b: '1' } });
      await client.silence();
      server.publish({ eds: { a: '2', b: '1' } });
      expect((await client.subscribe('eds', ['a'])).resources).toEqual({ a: '2' });
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'unsubscribing a name that was never subscribed is harmless',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('cds');
      await client.subscribe('eds', ['a']);
      client.request('cds', { unsubscribe: ['a', 'x'] });
      client.request('eds', { unsubscribe: ['x'] });
      await client.silence();
      server.publish({ cds: { a: '2' }, eds: { a: '1' } });
      expect((await client.take('cds')).resources).toEqual({ a: '2' });
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'a name unsubscribed under a wildcard is answered with the resource, or its removal',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('cds', ['*', 'a', 'x']);
      client.request('cds', { unsubscribe: ['a', 'x'] });
      expect(changesOf(await client.take('cds'))).toEqual({ resources: { a: '1' }, removed: ['x'] });
      await client.silence();
    },
  },
  {
    rule: 'Unsubscribing From Resources',
    name: 'everything that is dropped and wanted again while it is under way is not sent twice',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      client.request('cds');
      const first = await client.expect('cds');
      client.request('cds', { unsubscribe: ['*'] });
      client.request('cds', { subscribe: ['*'] });
      client.ack(first);
      expect(changesOf(await client.take('cds'))).toEqual({ resources: {}, removed: [] });
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'nothing, then a name, then no more *, then no more name: everything, the name again, it alone, none',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      expect((await client.subscribe('cds')).resources).toEqual({ a: '1', b: '1' });
      expect((await client.subscribe('cds', ['a'])).resources).toEqual({ a: '1' });
      client.request('cds', { unsubscribe: ['*'] });
      await client.silence();
      server.publish({ cds: { a: '2', b: '2' } });
      expect((await client.take('cds')).resources).toEqual({ a: '2' });
      client.request('cds', { unsubscribe: ['a'] });
      await client.silence();
      server.publish({ cds: { a: '3', b: '3' } });
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'a first request with names is no wildcard',
    async run(server) {
      server.publish({ cds: { a: '1', b: '1' } });
      const client = new DeltaClient(server);
      expect((await client.subscribe('cds', ['a'])).resources).toEqual({ a: '1' });
      server.publish({ cds: { a: '1', b: '2' } });
      await client.silence();
    },
  },
  {
    rule: 'How the client specifies what resources to return',
    name: 'a wildcard over nothing is answered with nothing, so that the client need not wait',
    async run(server) {
      server.publish({ cds: {} });
      const client = new DeltaClient(server);
      expect(changesOf(await client.subscribe('cds'))).toEqual({ resources: {}, removed: [] });
      await client.silence();
    },
  },
  {
    rule: 'Resource hints / re-subscribing',
    name: 'a name that the client already has is sent again when it subscribes to it',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('eds', ['a']);
      expect((await client.subscribe('eds', ['a'])).resources).toEqual({ a: '1' });
      await client.silence();
    },
  },
  {
    rule: 'Aggregated Discovery Service',
    name: 'types on one stream are independent',
    async run(server) {
      server.publish({ cds: { a: '1' }, lds: { l: '1' } });
      const client = new DeltaClient(server);
      client.request('cds');
      client.request('lds');
      const clusters = await client.expect('cds');
      client.ack(await client.expect('lds'));
      client.nack(clusters);
      await client.silence();
      server.publish({ cds: { a: '1' }, lds: { l: '2' } });
      expect((await client.take('lds')).resources).toEqual({ l: '2' });
    },
  },
  {
    rule: 'Nonce',
    name: 'a change of subscription counts even with a stale nonce, or none',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1', c: '1' } });
      const client = new DeltaClient(server);
      const first = await client.subscribe('eds', ['a']);
      server.publish({ eds: { a: '2', b: '1', c: '1' } });
      const second = await client.expect('eds');
      client.request('eds', { subscribe: ['b'], responseNonce: first.nonce });
      client.request('eds', { subscribe: ['c'] });
      await client.silence();
      client.ack(second);
      expect((await client.take('eds')).resources).toEqual({ b: '1', c: '1' });
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'a rejected version is not sent again until content changes',
    async run(server) {
      server.publish({ cds: { a: 'bad', b: '1' } });
      const client = new DeltaClient(server);
      client.request('cds');
      client.nack(await client.expect('cds'));
      await client.silence();
      server.publish({ cds: { a: 'bad', b: '1' } });
      await client.silence();
      server.publish({ cds: { a: '2', b: '1' } });
      expect((await client.take('cds')).resources).toEqual({ a: '2', b: '1' });
      await client.silence();
    },
  },
  {
    rule: 'ACK and NACK semantics summary',
    name: 'others are served what one rejected; a new stream of that one is offered it once, and no more',
    async run(server) {
      server.publish({ cds: { a: '1' }, eds: { a: 'bad' } });
      const first = new DeltaClient(server, 'n1');
      first.request('eds', { subscribe: ['a'] });
      first.nack(await first.expect('eds'));
      await first.silence();
      const other = new DeltaClient(server, 'n2');
      expect((await other.subscribe('eds', ['a'])).resources).toEqual({ a: 'bad' });
      await first.silence();
      await first.close();
      const again = new DeltaClient(server, 'n1');
      again.request('eds', { subscribe: ['a'] });
      again.nack(await again.expect('eds'));
      await again.silence();
      server.publish({ cds: { a: '1' }, eds: { a: '2' } });
      expect((await again.take('eds')).resources).toEqual({ a: '2' });
      await other.close();
    },
  },
  {
    rule: 'Deleting resources',
    name: 'what is gone is told after what is new, also to a client that rejects the new',
    async run(server) {
      server.publish({ cds: { old: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('cds');
      server.publish({ cds: { new: 'bad' } });
      const news = await client.expect('cds');
      expect(changesOf(news)).toEqual({ resources: { new: 'bad' }, removed: [] });
      client.nack(news);
      expect(changesOf(await client.take('cds'))).toEqual({ resources: {}, removed: ['old'] });
      await client.silence();
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'initial versions under a wildcard: equal is not sent, older is updated, gone is removed, new is added',
    async run(server) {
      server.publish({ cds: { same: '1', older: '1', gone: '1' } });
      const before = new DeltaClient(server);
      const { versions } = await before.subscribe('cds');
      await before.close();
      server.publish({ cds: { same: '1', older: '2', fresh: '1' } });
      const after = new DeltaClient(server);
      after.request('cds', { initialVersions: versions });
      expect((await after.take('cds')).resources).toEqual({ older: '2', fresh: '1' });
      expect(changesOf(await after.take('cds'))).toEqual({ resources: {}, removed: ['gone'] });
      await after.silence();
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'initial versions that are all current under a wildcard need no answer',
    async run(server) {
      server.publish({ cds: { a: '1' } });
      const before = new DeltaClient(server);
      const { versions } = await before.subscribe('cds');
      await before.close();
      const after = new DeltaClient(server);
      after.request('cds', { initialVersions: versions });
      await after.silence();
      server.publish({ cds: { a: '2' } });
      expect((await after.take('cds')).resources).toEqual({ a: '2' });
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'a subscribed name is answered even if its initial version is current',
    async run(server) {
      server.publish({ eds: { a: '1' } });
      const before = new DeltaClient(server);
      const { versions } = await before.subscribe('eds', ['a']);
      await before.close();
      const after = new DeltaClient(server);
      after.request('eds', { subscribe: ['a', 'gone'], initialVersions: { ...versions, gone: '0' } });
      expect(changesOf(await after.take('eds'))).toEqual({ resources: { a: '1' }, removed: ['gone'] });
      await after.silence();
    },
  },
  {
    rule: 'Requesting Additional Resources: reconnecting',
    name: 'a filter that the client holds is not reported as removed, and sent when it appears; others are',
    async run(server) {
      server.publish({ ecds: { a: '1', b: '1' } });
      const before = new DeltaClient(server);
      const { versions } = await before.subscribe('ecds', ['a', 'b']);
      server.publish({ ecds: { a: '1' } });
      await before.silence();
      await before.close();
      const after = new DeltaClient(server);
      after.request('ecds', { subscribe: ['a', 'b', 'c'], initialVersions: versions });
      expect(changesOf(await after.take('ecds'))).toEqual({ resources: { a: '1' }, removed: ['c'] });
      await after.silence();
      server.publish({ ecds: { a: '1', b: '2' } });
      expect(changesOf(await after.take('ecds'))).toEqual({ resources: { b: '2' }, removed: [] });
      await after.silence();
    },
  },
  {
    rule: 'When to send an update',
    name: 'while a response is unanswered no other of its type is sent; then the difference to the newest state is',
    async run(server) {
      server.publish({ eds: { a: '1', b: '1', c: '1' } });
      const client = new DeltaClient(server);
      await client.subscribe('eds', ['a', 'b', 'c']);
      server.publish({ eds: { a: '2', b: '1', c: '1' } });
      const second = await client.expect('eds');
      server.publish({ eds: { a: '3', b: '2', c: '1' } });
      server.publish({ eds: { a: '2', b: '3' } });
      await client.silence();
      client.ack(second);
      expect(changesOf(await client.take('eds'))).toEqual({ resources: { b: '3' }, removed: [] });
      expect(changesOf(await client.take('eds'))).toEqual({ resources: {}, removed: ['c'] });
      await client.silence();
    },
  },
  {
    rule: 'Eventual consistency considerations',
    name: 'a replaced cluster: new cluster and endpoints, then the routes, then the old cluster goes, last its endpoints',
    async run(server) {
      server.publish({ cds: { old: '1' }, eds: { old: '1' }, lds: { l: '1' }, rds: { l: 'to old' } });
      const client = new DeltaClient(server);
      await client.subscribe('cds');
      await client.subscribe('eds', ['old']);
      await client.subscribe('lds');
      await client.subscribe('rds', ['l']);
      await client.silence();
      server.publish({ cds: { new: '1' }, eds: { new: '1' }, lds: { l: '1' }, rds: { l: 'to new' } });
      const clusters = await client.expect('cds');
      expect(changesOf(clusters)).toEqual({ resources: { new: '1' }, removed: [] });
      client.request('eds', { subscribe: ['new'] });
      const endpoints = await client.expect('eds');
      expect(changesOf(endpoints)).toEqual({ resources: { new: '1' }, removed: [] });
      client.ack(clusters);
      await client.silence();
      client.ack(endpoints);
      const routes = await client.expect('rds');
      await client.silence();
      client.ack(routes);
      const removal = await client.expect('cds');
      expect(changesOf(removal)).toEqual({ resources: {}, removed: ['old'] });
      await client.silence();
      client.ack(removal);
      expect(changesOf(await client.take('eds'))).toEqual({ resources: {}, removed: ['old'] });
      await client.silence();
    },
  },
  {
    rule: 'Resource Types: runtime layers are named',
    name: 'a runtime layer is sent by name, and again when it changes; other layers are not',
    async run(server) {
      server.publish({ rtds: { layer: '1', other: '1' } });
      const client = new DeltaClient(server);
      expect((await client.subscribe('rtds', ['layer'])).resources).toEqual({ layer: '1' });
      server.publish({ rtds: { layer: '1', other: '2' } });
      await client.silence();
      server.publish({ rtds: { layer: '2', other: '2' } });
      expect((await client.take('rtds')).resources).toEqual({ layer: '2' });
      await client.silence();
    },
  },
  {
    rule: 'Resource warming',
    name: 'a changed cluster is followed by its endpoints although they did not change',
    async run(server) {
      server.publish({ cds: { c1: '1', c2: '1' }, eds: { c1: 'e1', c2: 'e1' } });
      const client = new DeltaClient(server);
      await client.subscribe('cds');
      await client.subscribe('eds', ['c1', 'c2']);
      await client.silence();
      server.publish({ cds: { c1: '2', c2: '1' }, eds: { c1: 'e1', c2: 'e1' } });
      await client.take('cds');
      expect((await client.take('eds')).resources).toEqual({ c1: 'e1' });
      await client.silence();
    },
  },
];

/** All that a response says, an empty part included. */
function changesOf({ resources, removed }: Received): Pick<Received, 'resources' | 'removed'> {
  return { resources, removed };
}
