import { describe, expect, it } from 'vitest';
import { Host } from '../../simulator/filter-host/host.js';
import { INLINE_SNAPSHOT_VERSION } from '../../wire/names.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import { deliver, sketch } from './snapshots.js';

const inline = (changes = {}) =>
  encodeSnapshot(sketch([{ weight: 1 }], { version: INLINE_SNAPSHOT_VERSION, ...changes }));
const configured = (snapshot: Uint8Array) => ({ frontendId: 'west', snapshot });

describe('a snapshot in the configuration', () => {
  it('is in force in every VM from the first request on, without a control server', () => {
    const host = new Host();
    for (const vm of [host.startVm(configured(inline())), host.startVm(configured(inline()))]) {
      const stream = vm.request({ 'x-wardrop-key': 'k' });
      expect(stream.endpoints).toEqual(['10.0.0.0:8000']);
      expect(stream.respond(200).decision.plan).toBe('0123456789abcdef');
    }
  });

  it('may be of any length', () => {
    // One, two and three bytes in the last group of base64.
    for (const name of ['m', 'mo', 'mod', 'mode']) {
      const vm = new Host().startVm(configured(inline({ models: [{ name, pool: 0 }] })));
      expect(vm.request({ 'x-wardrop-model': name }).forwarded).toBe(true);
    }
    const many = Array.from({ length: 2000 }, () => ({ weight: 1 }));
    const large = encodeSnapshot(sketch(many, { version: INLINE_SNAPSHOT_VERSION }));
    expect(large.length).toBeGreaterThan(100_000);
    expect(new Host().startVm(configured(large)).request().forwarded).toBe(true);
  });

  it('is as old as its issue says, and reported to the control server by its version', () => {
    const host = new Host();
    const vm = host.startVm(configured(inline({ issuedAtMs: host.nowMs - 120_000 })));
    vm.tick();
    expect(host.metrics.get('wardrop_snapshot_age_seconds')).toBe(120);
    expect(vm.call?.headers).toContainEqual(['x-wardrop-snapshot', '1']);
  });

  it('gives way to one from the control server, in VMs that start later, too', () => {
    const host = new Host();
    const vm = host.startVm(configured(inline()));
    deliver(vm, sketch([{ weight: 0 }, { weight: 1 }], { version: host.nowMs }));
    expect(vm.request().endpoints[0]).toBe('10.0.1.0:8000');
    const later = host.startVm(configured(inline()));
    expect(later.request().endpoints[0]).toBe('10.0.1.0:8000');
  });

  it('is checked like one from the control server: with a fault, the configuration is refused', () => {
    const corrupt = inline();
    corrupt[corrupt.length - 1]! ^= 1;
    for (const [bytes, reason] of [
      [corrupt, 'checksum'],
      [inline().subarray(0, 200), 'not as long as its header says'],
      [inline({ frontendId: 'east' }), 'another frontend'],
    ] as const) {
      const host = new Host();
      expect(() => host.startVm(configured(bytes))).toThrow('configuration refused');
      expect(host.logs.at(-1)).toContain(reason);
    }
  });
});
