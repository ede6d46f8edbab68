import { describe, expect, it } from 'vitest';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { deliver, sketch } from './snapshots.js';

const key = { 'x-wardrop-key': 'conversation' };

function started(view = sketch([{ weight: 1 }, { weight: 1 }]), host = new Host()): Vm {
  const vm = host.startVm({ frontendId: 'west', nativeSteering: true });
  deliver(vm, view);
  return vm;
}

function reported(vm: Vm) {
  vm.host.nowMs += 1000;
  vm.tick();
  vm.answer(304);
  const [block] = decodeUsageReport(vm.call!.body).vms;
  return block!;
}

describe('native steering', () => {
  it('names the cluster and the hash of the key, and nothing else', () => {
    const sent = Object.fromEntries(CLIENT_STEERING_HEADERS.map((name) => [name, 'spoofed']));
    const stream = started().request({ ...key, ...sent });
    const steering = CLIENT_STEERING_HEADERS.filter((name) => stream.header(name) !== undefined);
    expect(steering).toEqual(['x-wardrop-cluster', 'x-wardrop-hash']);
    expect(stream.header('x-wardrop-cluster')).toBe('pool-m');
    expect(stream.header('x-wardrop-hash')).toMatch(/^[0-9a-f]{16}$/);
  });

  it('gives a key the same hash in every VM, another key another, and a request without a key none', () => {
    const host = new Host();
    const one = started(undefined, host);
    const two = host.startVm({ frontendId: 'west', nativeSteering: true });
    two.tick();
    const hash = (vm: Vm, headers: Record<string, string>) => vm.request(headers).header('x-wardrop-hash');
    expect(hash(one, key)).toBe(hash(two, key));
    expect(hash(one, { 'x-wardrop-key': 'other' })).not.toBe(hash(one, key));
    expect(hash(one, {})).toBeUndefined();
    expect(hash(one, { 'x-wardrop-hash': 'spoofed' })).toBeUndefined();
  });

  it('tells the engine that answered, and counts the request as its', () => {
    const vm = started();
    for (const [address, engine] of [
      ['10.0.1.0:8000', 'e1'],
      ['10.0.1.0:8000', 'e1'],
      ['10.0.0.0:8000', 'e0'],
    ]) {
      const stream = vm.request(key).respond(200, { address: address! });
      expect(stream.decision.engine).toBe(engine);
      expect(stream.decision.reason).toBe('native');
      stream.end();
    }
    const { pools, engines } = reported(vm);
    expect(pools).toMatchObject([{ offered: 3 }]);
    const counts = engines.map(({ planned, ended, status2xx }) => [planned, ended, status2xx]);
    expect(counts.sort()).toEqual([
      [1, 1, 1],
      [2, 2, 2],
    ]);
  });

  it('survives answers that come from nobody, or from a replica that is not in the snapshot', () => {
    const vm = started();
    vm.request(key).respond(503, { details: 'no_healthy_upstream' }).end();
    vm.request(key).respond(200, { address: '10.9.9.9:1' }).responseBody('x').end();
    vm.request(key).end();
    vm.request(key).vanish();
    const { pools, engines } = reported(vm);
    expect(pools).toMatchObject([{ offered: 4, unavailable: 1 }]);
    expect(engines).toEqual([]);
  });

  it('leaves it to Envoy whether a replica that is not ready is tried', () => {
    expect(started(sketch([{ weight: 1, ready: false }])).request(key).forwarded).toBe(true);
  });

  it('still refuses what may not be served, and sheds', () => {
    const vm = started(sketch([{ weight: 1 }], { pool: { shedFraction: 1 } }));
    expect(vm.request(key).reply?.status).toBe(429);
    expect(vm.request({ ...key, 'x-wardrop-model': 'unknown' }).reply?.status).toBe(404);
  });

  it('costs no more host calls per request than steering by address', () => {
    const calls = (nativeSteering: boolean) => {
      const host = new Host();
      const vm = host.startVm({ frontendId: 'west', nativeSteering });
      deliver(vm, sketch([{ weight: 1 }, { weight: 1 }]));
      const total = () => [...host.calls.values()].reduce((sum, count) => sum + count, 0);
      const before = total();
      vm.request(key);
      return total() - before;
    };
    expect(calls(true)).toBeLessThan(calls(false));
  });
});
