import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host } from '../../simulator/filter-host/host.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();
const view = sketch([{ weight: 1 }]);

describe('before the first snapshot', () => {
  it('requests wait and go on when it arrives, decided like any other', () => {
    const vm = new Host(module).startVm();
    const held = Array.from({ length: 300 }, (_, index) => vm.request({ 'x-session-id': `k${index}` }));
    for (const stream of held) expect(stream.forwarded).toBe(false);
    deliver(vm, view);
    for (const stream of held) {
      expect(stream.forwarded).toBe(true);
      expect(stream.endpoints).toEqual(['10.0.0.0:8000']);
      expect(stream.respond(200).decision.reason).toBe('planned');
      stream.end();
    }
  });

  it('a waiting request that cannot be served is answered when the snapshot arrives', () => {
    const vm = new Host(module).startVm();
    const held = vm.request({ 'x-wardrop-model': 'unknown' });
    deliver(vm, view);
    expect(held.reply?.status).toBe(404);
    expect(held.resumed).toBe(false);
  });

  it('a client that leaves meanwhile is forgotten', () => {
    const vm = new Host(module).startVm();
    const gone = vm.request();
    gone.vanish();
    deliver(vm, view);
    expect(gone.resumed).toBe(false);
  });

  it('requests are refused with advice once the hold is over, the waiting ones too', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', startupHoldMs: 500 });
    const held = vm.request();
    vm.host.nowMs += 400;
    vm.tick();
    expect(held.reply).toBeUndefined();
    vm.host.nowMs += 200;
    vm.answer();
    vm.host.nowMs += 100;
    vm.tick();
    expect(vm.call).toBeDefined();
    for (const stream of [held, vm.request()]) {
      expect(stream.reply?.status).toBe(503);
      expect(stream.reply?.details).toBe('wardrop_starting');
      expect(stream.reply?.headers.map(([name]) => name)).toContain('retry-after');
      expect(JSON.parse(stream.reply!.body).error.code).toBe('starting');
    }
    deliver(vm, view);
    expect(vm.request().forwarded).toBe(true);
  });

  it('nothing waits with a hold of 0', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', startupHoldMs: 0 });
    expect(vm.request().reply?.status).toBe(503);
  });

  it('a VM that comes later has the snapshot at once', () => {
    const host = new Host(module);
    deliver(host.startVm(), view);
    expect(host.startVm().request().forwarded).toBe(true);
  });
});

describe('a change of the configuration', () => {
  it('keeps the snapshot for the same frontend and drops it for another', () => {
    const vm = new Host(module).startVm();
    deliver(vm, view);
    expect(vm.reconfigure({ frontendId: 'west', syncPeriodMs: 50 })).toBe(true);
    expect(vm.request().forwarded).toBe(true);
    expect(vm.reconfigure({ frontendId: 'east' })).toBe(true);
    expect(vm.request().forwarded).toBe(false);
    vm.tick();
    expect(vm.call?.headers).toContainEqual(['x-wardrop-frontend', 'east']);
    expect(vm.call?.headers).toContainEqual(['x-wardrop-snapshot', '0']);
  });
});
