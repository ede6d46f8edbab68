import { expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host } from '../../simulator/filter-host/host.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();
const GENERATIONS = 500;

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
      if (i % 3) stream.respond(i % 5 ? 200 : 503).responseBody('x');
      stream.end();
    }
    vm.host.nowMs += 10_000;
    vm.tick();
  };
  // Once around, so that the longest snapshot was seen.
  for (let i = 0; i < GENERATIONS; i++) round();
  const before = vm.memoryBytes;
  for (let i = 0; i < 1500; i++) round();
  expect(vm.memoryBytes).toBe(before);
});

it('a VM with a snapshot of 1 MiB stays below 8 MiB', () => {
  const vm = new Host(module).startVm();
  const view = (version: number) =>
    sketch(
      Array.from({ length: 250 }, () => ({ weight: 1, replicas: 100 })),
      { version },
    );
  for (let version = 1; version <= 20; version++) deliver(vm, view(version));
  for (let i = 0; i < 100; i++)
    vm.request({ 'x-session-id': `k${i}` })
      .respond(200)
      .end();
  vm.tick();
  expect(vm.host.metrics.get('wardrop_snapshot_version')).toBe(20);
  expect(vm.memoryBytes).toBeLessThanOrEqual(8 << 20);
});
