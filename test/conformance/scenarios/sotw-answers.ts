import { expect } from 'vitest';
import { SotwClient } from '../clients.js';
import { type TypeName, types } from '../messages.js';
import type { Scenario } from './scenario.js';
import { statuses } from './statuses.js';

export const answerScenarios: readonly Scenario[] = [
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
];

function typesOf(byShortName: Readonly<Record<string, object>>) {
  return Object.fromEntries(
    Object.entries(byShortName).map(([name, fields]) => [types[name as TypeName], fields]),
  );
}
