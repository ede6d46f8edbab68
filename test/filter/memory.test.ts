import { expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Stream } from '../../simulator/filter-host/host.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import { deliver, sketch } from './snapshots.js';

/** What an engine says of its load in a response. */
const LOAD: Headers = [['endpoint-load-metrics', 'TEXT named_metrics.kv_cache_usage_perc=0.5']];

const module = filterModule();
const GENERATIONS = 100;

it('memory does not grow with requests, failures or installs', () => {
  const vm = new Host(module).startVm();
  const engines = Array.from({ length: 20 }, () => ({ weight: 1, replicas: 3 }));
  let version = 1;
  const round = () => {
    // Every install brings engines that were not there before, so that old ones have to be forgotten.
    const view = sketch(engines, { version: ++version });
    const generation = version % GENERATIONS;
    deliver(vm, {
      ...view,
      engines: view.engines.map((engine, index) => ({
        ...engine,
        id: index < 10 ? engine.id : `${engine.id}-${generation}`,
      })),
    });
    for (let i = 0; i < 20; i++) {
      const stream = vm.request({ 'x-session-id': `k${i * version}` });
      if (i % 3) stream.respond(i % 5 ? 200 : 503, { headers: LOAD }).responseBody('x');
      stream.end();
    }
    vm.host.nowMs += 10_000;
    vm.tick();
  };
  // Once around, so that the longest snapshot was seen.
  for (let i = 0; i < GENERATIONS; i++) round();
  const before = vm.memoryBytes;
  for (let i = 0; i < 10 * GENERATIONS; i++) round();
  expect(vm.memoryBytes).toBe(before);
});

it('the VM that calls the control server stays below 8 MiB when most replicas of a snapshot of 1 MiB have told their load', () => {
  const host = new Host(module);
  const view = sketch(Array.from({ length: 220 }, () => ({ weight: 1, replicas: 100 })));
  const snapshots = Array.from({ length: 4 }, (_, index) => encodeSnapshot({ ...view, version: index + 1 }));
  expect(snapshots[0]!.length).toBeGreaterThan(2 ** 20);
  const vms = Array.from({ length: 2 }, () => host.startVm());
  const calling = vms[0]!;
  const next = () => {
    host.nowMs += 1000;
    for (const vm of vms) vm.tick();
  };
  const install = (version: number) => {
    next();
    calling.answer(200, snapshots[version % 4]);
  };
  for (let version = 0; version < 4; version++) install(version);
  next();
  const used = new Set<string>();
  const open: Stream[] = [];
  for (let i = 0; i < 20_000; i++) {
    // Some are in flight while reports are written.
    const stream = vms[i % 10 === 0 ? 1 : 0]!.request({ 'x-session-id': `k${i}` });
    for (const endpoint of stream.endpoints) used.add(endpoint);
    open.push(stream.respond(200, { headers: LOAD }));
    if (i % 5000 !== 4999) continue;
    next();
    for (const stream of open.slice(0, -500)) stream.end();
    open.splice(0, open.length - 500);
    next();
    calling.answer(304);
  }
  expect(used.size).toBeGreaterThan(0.8 * 22_000);
  for (let version = 4; version < 8; version++) install(version);
  next();
  const before = vms.map((vm) => vm.memoryBytes);
  for (let version = 8; version < 24; version++) install(version);
  next();
  expect(vms.map((vm) => vm.memoryBytes)).toEqual(before);
  for (const vm of vms) {
    expect(vm.host.metrics.get('wardrop_snapshot_version')).toBe(4);
    expect(vm.memoryBytes).toBeLessThanOrEqual(8 << 20);
  }
});

it('a body that is long takes no more memory than a short one', () => {
  const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true, maxBodyBytes: 8 << 20 });
  deliver(vm, sketch([{ weight: 1 }]));
  const ask = (bytes: number) => {
    const body = JSON.stringify({ messages: 'long '.repeat(bytes / 5), model: 'm', user: 'a' });
    const stream = vm.request({ 'content-type': 'application/json' }).send(body, true);
    expect(stream.forwarded).toBe(true);
    stream.respond(200).end();
  };
  ask(200_000);
  const before = vm.memoryBytes;
  ask(7_000_000);
  expect(vm.memoryBytes).toBe(before);
});

it('models, keys and tenants that clients make up add no statistics and take no memory', () => {
  const vm = new Host(module).startVm({ frontendId: 'west', tenantHeader: 'x-tenant' });
  deliver(vm, sketch([{ weight: 1 }, { weight: 1 }], { models: [{ name: 'm', pool: 0 }] }));
  const odd = ['m"} 1\nforged_series{a="b', 'acme{chat}', '\u202eevil', 'x'.repeat(300)];
  const round = (from: number, count: number) => {
    for (let i = from; i < from + count; i++) {
      const model = i % 3 === 0 ? 'm' : (odd[i % 50] ?? `m-${i}`);
      const headers = { 'x-wardrop-model': model, 'x-session-id': `k${i}`, 'x-tenant': `t${i}` };
      const stream = vm.request(headers);
      expect(stream.reply?.status).toBe(model === 'm' ? undefined : 404);
      if (stream.forwarded) stream.respond(200);
      stream.end();
    }
    vm.tick();
  };
  round(0, 300);
  const names = [...vm.host.metrics.keys()];
  const bytes = vm.memoryBytes;
  round(300, 10_000);
  expect([...vm.host.metrics.keys()]).toEqual(names);
  expect(vm.memoryBytes).toBe(bytes);
});
