import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import type { FilterConfig } from '../../wire/filter-config.js';
import { id64 } from '../../wire/hash.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();
const keys = Array.from({ length: 400 }, (_, index) => `k${index}`);

/** Urgent requests are never shed, batches by half, the rest by a fifth. */
const view: SnapshotView = sketch([{ weight: 1 }, { weight: 1 }], {
  needs: [
    { id: 'class/urgent', when: { kind: 'header', name: 'x-priority', value: 'urgent' } },
    { id: 'class/flex', when: { kind: 'serviceTier', value: 'flex' } },
    { id: 'class/batch', when: { kind: 'priority', above: 0 } },
  ],
  classRules: [
    { need: 0, priority: 10 },
    { need: 1, priority: -10 },
    { need: 2, priority: -20 },
  ],
  pool: {
    shedFraction: 0.2,
    otherClasses: [
      { priority: 10, retryRatio: 0.2, shedFraction: 0 },
      { priority: -10, retryRatio: 0, shedFraction: 0.5 },
      { priority: -20, retryRatio: 0, shedFraction: 1 },
    ],
  },
});

function started(config: Partial<FilterConfig> = { readBodies: true }): Vm {
  const vm = new Host(module).startVm({ frontendId: 'west', ...config });
  deliver(vm, view);
  return vm;
}

function refused(vm: Vm, headers: Record<string, string>, body: object = {}): string[] {
  return keys.filter((key) => {
    const stream = vm.request({ 'x-session-id': key, 'x-wardrop-model': 'm', ...headers });
    if (stream.action === 1 && !stream.reply) stream.send(JSON.stringify(body), true);
    const isRefused = stream.reply?.status === 429;
    stream.vanish();
    return isRefused;
  });
}

describe('the class of a request', () => {
  it('decides how much of it is shed, by header or by what the body says', () => {
    const vm = started();
    expect(refused(vm, { 'x-priority': 'urgent' })).toEqual([]);
    expect(refused(vm, {}, { service_tier: 'flex' }).length / keys.length).toBeCloseTo(0.5, 0);
    expect(refused(vm, {}, { priority: 3 })).toEqual(keys);
    const plain = refused(vm, {}, { priority: 0, service_tier: 'default' });
    expect(Math.abs(plain.length / keys.length - 0.2)).toBeLessThan(0.07);
    // The first rule that fits counts.
    expect(refused(vm, { 'x-priority': 'urgent' }, { priority: 3 })).toEqual([]);
    expect(refused(vm, {}, { priority: 3, service_tier: 'flex' })).not.toEqual(keys);
  });

  it('sheds of the less important all whom it sheds of the more important', () => {
    const vm = started();
    const plain = refused(vm, {});
    const flex = new Set(refused(vm, {}, { service_tier: 'flex' }));
    for (const key of plain) expect(flex.has(key)).toBe(true);
  });

  it('is the usual one where a body cannot be read, or says something else', () => {
    const vm = started();
    const plain = refused(vm, {});
    for (const body of [
      { priority: '3' },
      { priority: -3 },
      { priority: 0.5 },
      { service_tier: ['flex'] },
      {},
    ])
      expect(refused(vm, {}, body)).toEqual(plain);
    expect(refused(vm, { 'content-encoding': 'gzip' })).toEqual(plain);
    expect(refused(started({ readBodies: false }), {})).toEqual(plain);
  });

  it('has its own demand in reports and its own retry budget', () => {
    const vm = started();
    for (let i = 0; i < 40; i++)
      vm.request({ 'x-session-id': 'a', 'x-wardrop-model': 'm', 'x-priority': 'urgent' })
        .send('{}', true)
        .vanish();
    const asked = vm.request({ 'x-session-id': 'b', 'x-wardrop-model': 'm' }).send('{}', true);
    // The first class has used up its tokens, the other has all of its own.
    expect(asked.retries).toBeGreaterThan(0);
    asked.vanish();
    vm.tick();
    vm.answer(304);
    vm.host.nowMs += 100;
    vm.tick();
    const { pools } = decodeUsageReport(vm.call!.body).vms[0]!;
    expect(pools.every(({ pool }) => pool === id64('m'))).toBe(true);
    expect(new Map(pools.map(({ priority, offered }) => [priority, offered]))).toEqual(
      new Map([
        [10, 40],
        [0, 1],
      ]),
    );
  });

  it('leaves engine and replica as they are', () => {
    const vm = started();
    for (const key of keys.slice(0, 50)) {
      const of = (headers: Record<string, string>) => {
        const stream = vm.request({ 'x-session-id': key, 'x-wardrop-model': 'm', ...headers });
        if (stream.action === 1 && !stream.reply) stream.send('{}', true);
        const [endpoint] = stream.endpoints;
        stream.vanish();
        return endpoint;
      };
      const plain = of({});
      if (plain !== undefined) expect(of({ 'x-priority': 'urgent' })).toBe(plain);
    }
  });
});
