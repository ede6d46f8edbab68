import { describe, expect, it } from 'vitest';
import type { Stream, Vm } from '../../simulator/filter-host/host.js';
import { deliver, sketch, started } from './snapshots.js';

const MISSING = '10.0.0.0:8000';
const BACKUP = '10.0.1.0:8000';
const CODES = 'x-envoy-retriable-status-codes';

/** Two engines of one replica each; all keys belong to the first, which refuses. */
const two = (version = 1) => sketch([{ weight: 1 }, { weight: 0 }], { version });

/** Answers as Envoy and the engines would: who is among `refusers` refuses, and that is tried elsewhere where the filter says so. */
function answer(stream: Stream, status: number, refusers: readonly string[]): string {
  const codes = stream.header(CODES)?.split(',') ?? [];
  const last = codes.includes(`${status}`) ? Math.min(stream.retries, stream.endpoints.length - 1) : 0;
  const served = stream.endpoints.findIndex((address) => !refusers.includes(address));
  const attempts = 1 + (served < 0 ? last : Math.min(served, last));
  const refused = refusers.includes(stream.endpoints[attempts - 1]!);
  stream.respond(refused ? status : 200, { attempts, ended: true }).end();
  return `${refused ? status : 200} ${stream.endpoints[attempts - 1]}`;
}

interface Asked {
  readonly statuses: string[];
  /** How many were sent to the replica that refuses. */
  readonly sent: number;
}

/** Ten requests a second. */
function ask(vm: Vm, seconds: number, refusers: readonly string[], status = 404): Asked {
  const statuses: string[] = [];
  let sent = 0;
  for (let i = 0; i < 10 * seconds; i++) {
    const stream = vm.request({ 'x-session-id': `k${i}` });
    if (stream.endpoints[0] === MISSING) sent++;
    statuses.push(answer(stream, status, refusers));
    vm.host.nowMs += 100;
    vm.tick();
  }
  return { statuses, sent };
}

const refusedOf = ({ statuses }: Asked) => statuses.filter((text) => !text.startsWith('200')).length;

describe('a replica that refuses what others of its pool serve', () => {
  it.each([401, 403, 404])(
    'is left out with %i: its first answer reaches a client, and hardly another',
    (status) => {
      const vm = started(two());
      ask(vm, 2, []);
      const first = ask(vm, 3, [MISSING], status);
      expect(refusedOf(first)).toBe(1);
      // A second of them proves it; then one tests it a second later, and the next two seconds after that.
      expect(first.sent).toBeGreaterThan(8);
      expect(first.sent).toBeLessThan(16);
      const later = ask(vm, 20, [MISSING], status);
      expect(refusedOf(later)).toBe(0);
      expect(later.sent).toBeLessThan(6);
      expect(vm.host.metrics.get('wardrop_replica_ejections')).toBeGreaterThan(1);
      expect(vm.host.logs.filter((line) => line.includes('refuses'))).toEqual([
        expect.stringContaining(
          `replica ${MISSING} of engine e0 refuses (401, 403 or 404) what others of a pool serve; it gets no more of its requests until it serves one`,
        ),
      ]);
    },
  );

  it('has its keys back with the first request that it serves', () => {
    const vm = started(two());
    ask(vm, 5, [MISSING]);
    ask(vm, 30, []);
    expect(ask(vm, 1, []).sent).toBe(10);
    expect(vm.request({ 'x-session-id': 'a' }).header(CODES)).toBeUndefined();
  });

  it('is tested as soon as it has come up again', () => {
    const vm = started(two());
    ask(vm, 20, [MISSING]);
    deliver(vm, sketch([{ weight: 1, ready: false }, { weight: 0 }], { version: 2 }));
    deliver(vm, two(3));
    const { sent, statuses } = ask(vm, 1, []);
    expect([sent, statuses[0]]).toEqual([10, `200 ${MISSING}`]);
  });

  it('gets what there is where nobody else is usable', () => {
    const vm = started(two());
    ask(vm, 3, [MISSING]);
    for (let i = 0; i < 3; i++) vm.request({ 'x-session-id': 'a' }).respond(503).end();
    const stream = vm.request({ 'x-session-id': 'a' }).respond(404);
    expect([stream.endpoints[0], stream.decision.reason]).toEqual([MISSING, 'floor']);
  });

  it('goes on to serve the other pools that it has', () => {
    const pools = ['m', 'adapter'].map((id) => ({ ...two().pools[0]!, id, cluster: `pool-${id}` }));
    const models = [
      { name: 'm', pool: 0 },
      { name: 'adapter', pool: 1 },
    ];
    const vm = started({ ...two(), models, pools });
    const endpoint = (model: string, refusers: readonly string[]) => {
      const stream = vm.request({ 'x-session-id': 'a', 'x-wardrop-model': model });
      answer(stream, 404, refusers);
      vm.host.nowMs += 100;
      vm.tick();
      return stream.endpoints[0];
    };
    for (let i = 0; i < 20; i++) {
      endpoint('adapter', [MISSING]);
      expect(endpoint('m', [])).toBe(MISSING);
    }
    const seen = new Set(Array.from({ length: 5 }, () => endpoint('adapter', [MISSING])));
    expect(seen).toContain(BACKUP);
    expect(endpoint('m', [])).toBe(MISSING);
  });
});

describe('refusals', () => {
  it('leave nobody out where everybody refuses, and are tried elsewhere only once in a while', () => {
    const vm = started(two());
    const { sent, statuses } = ask(vm, 20, [MISSING, BACKUP], 401);
    expect(sent).toBe(200);
    expect(statuses.filter((text) => text.endsWith(BACKUP)).length).toBeLessThanOrEqual(20);
    expect(vm.host.metrics.get('wardrop_replica_ejections')).toBe(0);
  });

  it('of a client that others would serve leave no replica out that serves somebody meanwhile', () => {
    const vm = started(two());
    for (let i = 0; i < 100; i++) {
      answer(vm.request({ 'x-session-id': 'bad' }), 401, [MISSING]);
      const good = vm.request({ 'x-session-id': 'good' });
      expect(good.endpoints[0]).toBe(MISSING);
      answer(good, 401, []);
      vm.host.nowMs += 100;
      vm.tick();
    }
  });

  it('of other kinds say nothing: the request is wrong, or the engine is full', () => {
    for (const status of [400, 413, 422, 429]) {
      const vm = started(two());
      const { sent, statuses } = ask(vm, 3, [MISSING], status);
      expect(sent).toBe(30);
      expect(new Set(statuses)).toEqual(new Set([`${status} ${MISSING}`]));
    }
  });

  it('that nobody serves cost no more than half of the retry budget', () => {
    const vm = started(sketch([{ weight: 1 }, { weight: 0 }], { pool: { retryRatio: 0 } }));
    const { statuses } = ask(vm, 30, [MISSING, BACKUP]);
    const tried = statuses.filter((text) => text.endsWith(BACKUP)).length;
    expect([tried > 3, tried < 7]).toEqual([true, true]);
  });

  it('of requests that are not steered, or that need no model, are not tried elsewhere', () => {
    const observing = started(two(), { observe: true });
    const listing = started(two());
    for (let i = 0; i < 5; i++) {
      observing.request({ 'x-session-id': 'a' }).respond(404, { address: MISSING }).end();
      const list = listing.request({ 'x-session-id': 'a', ':method': 'GET' }, { ended: true });
      list.respond(404).end();
      expect(list.header(CODES)).toBeUndefined();
    }
    for (const vm of [observing, listing])
      expect(vm.request({ 'x-session-id': 'a' }).header(CODES)).toBeUndefined();
  });

  it('cannot be had tried elsewhere by a client that says so', () => {
    const vm = started(two());
    for (let i = 0; i < 3; i++) {
      const stream = vm.request({ 'x-session-id': 'a', [CODES]: '404' });
      expect(stream.header(CODES)).toBeUndefined();
      answer(stream, 404, [MISSING]);
    }
  });

  it('are known of no more replicas than there is room for', () => {
    const many = { weight: 1, replicas: 300 };
    const vm = started(sketch([many, { weight: 1 }]));
    for (let i = 0; i < 3_000; i++) {
      const stream = vm.request({ 'x-session-id': `k${i}` });
      answer(stream, 404, stream.endpoints);
    }
    deliver(vm, sketch([{ weight: 1 }, { weight: 1 }], { version: 2 }));
    vm.host.nowMs += 61_000;
    vm.tick();
    deliver(vm, sketch([many, { weight: 1 }], { version: 3 }));
    expect(vm.request({ 'x-session-id': 'a' }).forwarded).toBe(true);
  });
});
