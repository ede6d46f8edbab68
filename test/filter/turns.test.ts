import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Vm } from '../../simulator/filter-host/host.js';
import { Random } from '../../simulator/random.js';
import { id64 } from '../../wire/hash.js';
import type { VmUsage } from '../../wire/usage-report.js';
import { TurnGaps } from '../../xds-server/signals/demand/turn-gaps.js';
import { UsageLedger } from '../../xds-server/signals/usage/usage-ledger.js';
import { reportOf } from './reported.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();

function started(): { host: Host; vm: Vm } {
  const host = new Host(module);
  const vm = host.startVm();
  deliver(vm, sketch([{ weight: 1 }]));
  return { host, vm };
}

function ask(vm: Vm, key: string, headers: Record<string, string> = {}): void {
  vm.request({ 'x-session-id': key, ...headers }).end();
}

const zeroBits = (key: bigint) => key.toString(2).length - key.toString(2).replace(/0+$/, '').length;

describe('turns', () => {
  it('are counted of conversations, not of requests without a key or that clients repeat', () => {
    const { vm } = started();
    for (let i = 0; i < 3; i++) ask(vm, 'a');
    ask(vm, 'a', { 'x-stainless-retry-count': '1' });
    vm.request().end();
    expect(reportOf(vm)).toMatchObject({
      turns: [{ pool: id64('m'), key: expect.any(BigInt), turns: 3 }],
      turnLevel: 0,
    });
  });

  it('are counted of as many conversations as there is room for, the same in all VMs', () => {
    const keys = Array.from({ length: 1_000 }, (_, index) => `conversation ${index}`);
    const [one, other] = [keys, keys.toReversed()].map((order) => {
      const { vm } = started();
      for (const key of [...order, ...order]) ask(vm, key);
      return reportOf(vm);
    }) as [VmUsage, VmUsage];
    const keysOf = ({ turns }: VmUsage) => turns.map(({ key }) => key).sort();
    expect(keysOf(one)).toEqual(keysOf(other));
    expect(one.turns.length).toBeGreaterThan(20);
    expect(one.turns.length).toBeLessThanOrEqual(64);
    expect(one.turnLevel).toBe(other.turnLevel);
    expect(one.turns.every(({ key }) => zeroBits(key) >= one.turnLevel)).toBe(true);
  });

  it('are counted of more conversations again when they have become few', () => {
    const { host, vm } = started();
    for (let i = 0; i < 1_000; i++) ask(vm, `conversation ${i}`);
    const { turnLevel } = reportOf(vm);
    expect(turnLevel).toBeGreaterThan(2);
    for (let minutes = 10; minutes > 0; minutes--) {
      host.nowMs += 600_000;
      vm.tick();
    }
    expect(reportOf(vm).turnLevel).toBe(0);
    for (let i = 0; i < 40; i++) ask(vm, `another ${i}`);
    expect(reportOf(vm).turns.filter(({ turns }) => turns === 1).length).toBeGreaterThanOrEqual(40);
  });

  it('tell the control server how long conversations pause, at any rate, through several VMs', () => {
    const meanSeconds = 40;
    const random = new Random(7);
    const events: { at: number; key: string }[] = [];
    for (let at = 0, n = 0; at < 2_400; at += random.exponential(1 / 4), n++) {
      const turns = random.integer({ min: 1, max: 7 });
      for (let turn = 0, then = at; turn < turns; turn++, then += random.exponential(meanSeconds)) {
        events.push({ at: then, key: `conversation ${n}` });
      }
    }
    events.sort((a, b) => a.at - b.at);
    const hosts = [started(), started(), started()];
    const ledger = new UsageLedger();
    const gaps = new TurnGaps();
    const startMs = hosts[0]!.host.nowMs;
    let next = 0;
    for (let second = 0; second < 2_400; second += 2) {
      for (; next < events.length && events[next]!.at < second; next++) {
        ask(hosts[random.integer({ min: 0, max: 2 })]!.vm, events[next]!.key);
      }
      for (const [index, { host, vm }] of hosts.entries()) {
        host.nowMs = startMs + 1_000 * second;
        const delta = ledger.accept(`n${index}`, { vms: [reportOf(vm)] }, host.nowMs);
        if (delta !== undefined) gaps.add(delta.nodeId, delta.turns, delta.turnLevel, host.nowMs);
      }
    }
    const { gapSeconds, followUpShare } = gaps.view(id64('m'))!;
    expect(Math.abs(gapSeconds / meanSeconds - 1)).toBeLessThan(0.15);
    expect(Math.abs(followUpShare - 0.75)).toBeLessThan(0.1);
  });
});
