import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import type { FilterConfig } from '../../wire/filter-config.js';
import { id64 } from '../../wire/hash.js';
import type { SnapshotView } from '../../wire/snapshot-view.js';
import type { NetworkUsage } from '../../wire/usage-report.js';
import { reportOf } from './reported.js';
import { deliver, type EngineSketch, sketch } from './snapshots.js';

const module = filterModule();

function measuring(engines: readonly EngineSketch[]): SnapshotView {
  const view = sketch(engines);
  return { ...view, engines: view.engines.map((engine) => ({ ...engine, probePath: '/healthz' })) };
}

function started(view: SnapshotView, config?: FilterConfig): { host: Host; vm: Vm } {
  const host = new Host(module);
  const vm = host.startVm(config);
  deliver(vm, view);
  return { host, vm };
}

/** Ticks until an engine is asked, and returns where. */
function asked(vm: Vm): string | undefined {
  for (let i = 0; i < 60 && vm.questions.length === 0; i++) {
    vm.host.nowMs += 100;
    vm.tick();
  }
  return vm.questions[0]?.headers.find(([name]) => name === ':authority')?.[1];
}

/** Answers what is being asked after so many milliseconds each. */
function answer(vm: Vm, ...afterMs: readonly number[]): void {
  for (const ms of afterMs) {
    vm.host.nowMs += ms;
    vm.answerQuestion(200);
  }
}

const networks = (vm: Vm): readonly NetworkUsage[] => reportOf(vm).networks;

describe('round trips', () => {
  it('are the least of three questions to the health page of a replica, through the cluster of its pool', () => {
    const { vm } = started(measuring([{ weight: 1 }]));
    expect(asked(vm)).toBe('10.0.0.0:8000');
    expect(vm.questions[0]).toMatchObject({ cluster: 'pool-m', body: new Uint8Array() });
    expect(vm.questions[0]!.headers).toEqual([
      [':method', 'GET'],
      [':path', '/healthz'],
      [':authority', '10.0.0.0:8000'],
      ['x-gateway-destination-endpoint', '10.0.0.0:8000'],
    ]);
    answer(vm, 60, 20, 35);
    expect(vm.questions).toEqual([]);
    const [row] = networks(vm);
    expect(row).toMatchObject({ engine: id64('e0'), roundTripCount: 1 });
    expect(row!.roundTripSecondsSum).toBeCloseTo(0.02, 9);
  });

  it('are measured of one engine after the other, also of those that get no requests', () => {
    const { vm } = started(measuring([{ weight: 1 }, { weight: 0 }, { weight: 1, replicas: 2 }]));
    const seen = Array.from({ length: 6 }, () => {
      const address = asked(vm)!;
      answer(vm, 5, 5, 5);
      return address.split('.')[2];
    });
    expect(new Set(seen.slice(0, 3)).size).toBe(3);
    expect(seen.slice(3)).toEqual(seen.slice(0, 3));
  });

  it.each([[503], [504], [undefined]])('do not count when Envoy answers for the engine: %s', (status) => {
    const { vm } = started(measuring([{ weight: 1 }]));
    asked(vm);
    vm.host.nowMs += 1;
    vm.answerQuestion(status);
    expect(vm.questions).toEqual([]);
    expect(networks(vm)).toEqual([]);
  });

  it('count whatever an engine answers', () => {
    const { vm } = started(measuring([{ weight: 1 }]));
    for (const status of [401, 404, 200]) {
      asked(vm);
      vm.answerQuestion(status);
    }
    expect(networks(vm)).toMatchObject([{ roundTripCount: 1 }]);
  });

  it('are measured of every engine within half a minute, of several at a time where there are many', () => {
    const engines = Array.from({ length: 1_000 }, () => ({ weight: 1 }));
    const { host, vm } = started(measuring(engines));
    const asked = new Set<string>();
    for (let tick = 0; tick <= 300; tick++) {
      vm.tick();
      for (const { headers } of vm.questions) asked.add(headers.find(([name]) => name === ':authority')![1]);
      host.nowMs += 100;
      for (let count = vm.questions.length; count > 0; count--) vm.answerQuestion(200);
    }
    expect(asked.size).toBe(engines.length);
    expect(networks(vm).every(({ roundTripSecondsSum }) => Math.abs(roundTripSecondsSum - 0.1) < 1e-9)).toBe(
      true,
    );
  });

  it('are not measured of replicas that are not ready, nor of engines without a path', () => {
    expect(asked(started(measuring([{ weight: 1, ready: false }])).vm)).toBeUndefined();
    expect(asked(started(sketch([{ weight: 1 }])).vm)).toBeUndefined();
  });

  it('are not measured where Envoy picks the host', () => {
    const config = { frontendId: 'west', nativeSteering: true };
    expect(asked(started(measuring([{ weight: 1 }]), config).vm)).toBeUndefined();
  });

  it('do not disturb what the control server is asked, nor the other way round', () => {
    const { host, vm } = started(measuring([{ weight: 1 }]));
    asked(vm);
    expect(vm.call).toBeDefined();
    const question = vm.questions[0];
    const call = vm.call;
    host.nowMs += 1_000;
    vm.answer(304);
    expect(vm.call).not.toBe(call);
    expect(vm.questions[0]).toBe(question);
    answer(vm, 7, 7, 7);
    expect(networks(vm)).toMatchObject([
      { roundTripCount: 1, roundTripSecondsSum: expect.closeTo(0.007, 9) },
    ]);
    expect(host.metrics.get('wardrop_sync_failures')).toBe(0);
    expect(host.metrics.get('wardrop_snapshot_refusals')).toBe(0);
  });

  it('go on after an answer that never comes', () => {
    const { vm } = started(measuring([{ weight: 1 }]));
    expect(asked(vm)).toBeDefined();
    vm.questions.length = 0;
    expect(asked(vm)).toBeDefined();
    answer(vm, 5, 5, 5);
    expect(networks(vm)).toMatchObject([{ roundTripCount: 1 }]);
  });

  it('are asked for every second at first, then every five', () => {
    const { host, vm } = started(measuring([{ weight: 1 }]));
    const times = Array.from({ length: 12 }, () => {
      asked(vm);
      answer(vm, 0, 0, 0);
      return host.nowMs;
    });
    const pauses = times.slice(1).map((at, index) => at - times[index]!);
    expect(pauses).toEqual([...Array(5).fill(1_000), ...Array(6).fill(5_000)]);
  });
});
