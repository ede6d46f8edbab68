import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream } from '../../simulator/filter-host/host.js';
import type { FilterConfig } from '../../wire/filter-config.js';
import { keyHash, steerPoint } from '../../wire/hash.js';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { deliver, engineOf, sketch, started } from './snapshots.js';

const module = filterModule();
const keys = Array.from({ length: 2000 }, (_, index) => `k${index}`);
const STEERING = ['x-gateway-destination-endpoint', 'x-envoy-max-retries'];

const observing = (config: Partial<FilterConfig> = {}) =>
  started(sketch([{ weight: 1 }, { weight: 3 }], { steered: 0 }), config);

function isSteered(stream: Stream): boolean {
  return STEERING.every((name) => stream.header(name) !== undefined);
}

describe('where nothing is steered', () => {
  it('a request goes where its route leads: a route by cluster header is told the pool, hosts and retries are not', () => {
    const vm = observing();
    const stream = vm.request({ 'x-session-id': 'a' });
    expect(stream.forwarded).toBe(true);
    expect(stream.header('x-wardrop-cluster')).toBe('pool-m');
    for (const name of STEERING) expect(stream.header(name)).toBeUndefined();
  });

  it('the answer tells what was decided, and that it was not followed', () => {
    const steering = started(sketch([{ weight: 1 }, { weight: 3 }]));
    const vm = observing();
    for (const key of keys.slice(0, 50)) {
      const decided = engineOf(steering.request({ 'x-session-id': key }).endpoints[0]);
      const stream = vm.request({ 'x-session-id': key }).respond(200, { address: '10.9.9.9:1' });
      expect(stream.decision.engine).toBe(`e${decided}`);
      expect(stream.decision.reason).toBe('planned');
      expect(stream.decision.plan).toBe('0123456789abcdef');
      expect(stream.decision.mode).toBe('observe');
      stream.end();
    }
    expect(steering.request({ 'x-session-id': 'a' }).respond(200).decision.mode).toBeUndefined();
  });

  it('decisions and demand are counted, and the engine that answered if it is one of the pool', () => {
    const vm = observing();
    for (const [index, key] of keys.slice(0, 30).entries()) {
      const address = index % 3 ? '10.0.0.0:8000' : '10.9.9.9:1';
      vm.request({ 'x-session-id': key }).respond(200, { address }).responseBody('x', true).end();
    }
    vm.tick();
    expect(vm.host.metrics.get('wardrop_requests_planned')).toBe(30);
    vm.answer(304);
    vm.host.nowMs += 100;
    vm.tick();
    const [usage] = decodeUsageReport(vm.call!.body).vms;
    expect(usage!.pools[0]).toMatchObject({ offered: 30, shed: 0, unavailable: 0 });
    expect(usage!.engines.map(({ planned, ended }) => [planned, ended])).toEqual([[20, 20]]);
  });

  it('nothing is refused where the route leads somewhere by itself, else what cannot be decided is', () => {
    const two = [
      { name: 'm', pool: 0 },
      { name: 'n', pool: 0 },
    ];
    const vm = started(sketch([{ weight: 1 }], { steered: 0, models: two, pool: { shedFraction: 1 } }));
    const shed = vm.request({ 'x-wardrop-model': 'm' });
    expect([shed.forwarded, shed.header('x-wardrop-cluster')]).toEqual([true, 'pool-m']);
    expect(shed.respond(200).decision.reason).toBe('shed');
    for (const model of [{ 'x-wardrop-model': 'unknown' }, {}] as Record<string, string>[]) {
      expect(vm.request(model).reply?.status).toBeGreaterThanOrEqual(400);
      const led = vm.request(model, { routeCluster: 'theirs' });
      expect([led.forwarded, led.header('x-wardrop-cluster')]).toEqual([true, undefined]);
      expect(led.respond(200).decision.mode).toBe('observe');
      led.end();
    }
    vm.tick();
    expect(vm.host.metrics.get('wardrop_requests_shed')).toBe(1);
    expect(vm.host.metrics.get('wardrop_requests_model_not_found')).toBe(2);
  });

  it('nothing is retried, also on routes that would by themselves, whatever clients say', () => {
    const config = { routeRetries: 2 };
    const sent = { 'x-session-id': 'a', 'x-envoy-max-retries': '5' };
    const decided = observing(config).request(sent);
    const full = sketch([{ weight: 1 }], { steered: 0, pool: { shedFraction: 1 } });
    const shed = started(full, config).request(sent);
    const passed = observing(config).request(sent, { ended: true });
    const unknown = observing(config).request(
      { ...sent, 'x-wardrop-model': 'unknown' },
      { routeCluster: 'theirs' },
    );
    const blind = new Host(module).startVm({ frontendId: 'west', observe: true, ...config }).request(sent);
    for (const stream of [decided, shed, passed, unknown, blind]) {
      expect([stream.forwarded, stream.header('x-envoy-max-retries')]).toEqual([true, '0']);
    }
    const native = observing({ ...config, nativeSteering: true }).request({ 'x-session-id': 'a' });
    expect(native.header('x-envoy-max-retries')).toBeUndefined();
  });

  it('a client still cannot name a host, nor a cluster', () => {
    const vm = observing();
    const spoofs = CLIENT_STEERING_HEADERS.map((name): [string, string] => [name, '127.0.0.1:9901']);
    const stream = vm.request([['x-session-id', 'a'], ...spoofs]);
    expect(stream.header('x-wardrop-cluster')).toBe('pool-m');
    const left = stream.requestHeaders.filter(([, value]) => value === '127.0.0.1:9901');
    expect(left.every(([name]) => name.startsWith('x-envoy-') && name !== 'x-envoy-original-dst-host')).toBe(
      true,
    );
    const unknown = vm.request([['x-wardrop-model', 'unknown'], ...spoofs], {
      routeCluster: '127.0.0.1:9901',
    });
    expect(unknown.reply?.status).toBe(404);
  });

  it('guardrails learn from answers of the pool, and from no others', () => {
    const vm = observing();
    for (const key of keys.slice(0, 100)) {
      vm.request({ 'x-session-id': key }).respond(503, { address: '10.9.9.9:1' }).end();
    }
    vm.tick();
    expect(vm.host.metrics.get('wardrop_replica_ejections')).toBe(0);
    for (const key of keys.slice(0, 100)) {
      vm.request({ 'x-session-id': key }).respond(503, { address: '10.0.1.0:8000' }).end();
    }
    vm.tick();
    expect(vm.host.metrics.get('wardrop_replica_ejections')).toBe(1);
  });
});

describe('the share of steered keys', () => {
  const steered = (share: number) => {
    const vm = started(sketch([{ weight: 1 }, { weight: 3 }], { steered: share }));
    return new Set(keys.filter((key) => isSteered(vm.request({ 'x-session-id': key }))));
  };

  it('is met, evenly over engines, by the same keys in every VM', () => {
    const some = steered(0.3);
    expect([...steered(0.3)]).toEqual([...some]);
    // Three standard deviations of 2000 draws are 0.031.
    expect(Math.abs(some.size / keys.length - 0.3)).toBeLessThan(0.031);
    for (const key of keys) {
      expect(some.has(key)).toBe(steerPoint(keyHash('pepper', '', key)) < 0.3 * 2 ** 32);
    }
  });

  it('keeps the keys that were steered when it grows', () => {
    const few = steered(0.2);
    const many = steered(0.5);
    for (const key of few) expect(many.has(key)).toBe(true);
  });

  it('is nobody at 0 and everybody at 1', () => {
    expect(steered(0).size).toBe(0);
    expect(steered(1).size).toBe(keys.length);
  });

  it('changes with a snapshot, for requests that come after it', () => {
    const vm = started(sketch([{ weight: 1 }]));
    const before = vm.request({ 'x-session-id': 'a' });
    deliver(vm, sketch([{ weight: 1 }], { version: 2, steered: 0 }));
    expect(isSteered(before)).toBe(true);
    expect(isSteered(vm.request({ 'x-session-id': 'a' }))).toBe(false);
    expect(before.respond(200).decision.mode).toBeUndefined();
  });
});

describe('the option observe', () => {
  it('steers nothing, whatever the snapshot says', () => {
    const vm = started(sketch([{ weight: 1 }]), { observe: true });
    expect(isSteered(vm.request({ 'x-session-id': 'a' }))).toBe(false);
  });

  it('lets requests go on at once while there is no snapshot', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', observe: true, readBodies: true });
    const stream = vm.request({ 'x-session-id': 'a' });
    expect([stream.action, stream.reply, stream.header('x-wardrop-cluster')]).toEqual([
      0,
      undefined,
      undefined,
    ]);
    stream.respond(200).end();
  });
});
