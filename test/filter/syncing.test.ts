import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { DISPLACED_FORMAT, REPORT_FORMAT, SNAPSHOT_FORMAT } from '../../wire/layout.js';
import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import type { EngineUsage, PoolUsage } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { deliver, sketch, sweep } from './snapshots.js';

const module = filterModule();
const engines = [{ weight: 1, replicas: 2 }, { weight: 1 }];

function startedVms(count: number): { host: Host; vms: Vm[] } {
  const host = new Host(module);
  const vms = Array.from({ length: count }, () => host.startVm());
  deliver(vms[0]!, sketch(engines));
  for (const vm of vms) vm.tick();
  return { host, vms };
}

function step(vms: readonly Vm[], ms = 100): void {
  vms[0]!.host.nowMs += ms;
  for (const vm of vms) vm.tick();
}

/** The report of the next call that starts after a tick. */
function report(vms: readonly Vm[]) {
  step(vms);
  const caller = vms.find((vm) => vm.call)!;
  caller.host.nowMs += 1000;
  caller.answer(304);
  return decodeUsageReport(caller.call!.body);
}

function totals(vms: readonly Vm[]): { pool: PoolUsage; flows: Map<string, EngineUsage> } {
  const { vms: blocks } = report(vms);
  const add = <T extends object>(a: T | undefined, b: T): T => {
    if (!a) return b;
    const sum = Object.entries(b).map(([key, value]) => [
      key,
      typeof value === 'bigint' ? value : value + (a as Record<string, number>)[key]!,
    ]);
    return Object.fromEntries(sum) as T;
  };
  const flows = new Map<string, EngineUsage>();
  for (const row of blocks.flatMap((block) => block.engines)) {
    expect(row.pool).toBe(id64('m'));
    const id = ['e0', 'e1'].find((name) => id64(name) === row.engine)!;
    flows.set(id, add(flows.get(id), row));
  }
  const pools = blocks.flatMap((block) => block.pools);
  return { pool: pools.reduce((sum, row) => add(sum, row)), flows };
}

describe('the lease', () => {
  it('lets one VM call, and another take over when that one stops', () => {
    const { host, vms } = startedVms(3);
    const calling = () => vms.map((vm) => vm.call !== undefined);
    expect(calling()).toEqual([true, false, false]);
    for (let i = 0; i < 50; i++) step(vms);
    expect(calling()).toEqual([true, false, false]);
    const left = vms.slice(1);
    for (let i = 0; i < 25; i++) step(left);
    expect(left.filter((vm) => vm.call)).toHaveLength(1);
    expect(host.metrics.get('wardrop_sync_failures')).toBe(0);
  });

  it('goes to a VM with another configuration when one refuses a snapshot, and comes back when all do', () => {
    const host = new Host(module);
    const vms = [host.startVm(), host.startVm({ frontendId: 'west', readBodies: true })];
    const [old, recent] = vms as [Vm, Vm];
    const news = encodeSnapshot(
      sketch(engines, {
        version: 2,
        needs: [{ id: 'vision', when: { kind: 'body', feature: 'images' } }],
        models: [{ name: 'm', pool: 0, needs: [0], pools: [0, 0] }],
      }),
    );
    step(vms);
    old.answer(200, news);
    step(vms);
    expect([old.call, recent.call !== undefined]).toEqual([undefined, true]);
    recent.answer(200, news);
    expect(recent.call?.headers).toContainEqual(['x-wardrop-snapshot', '2']);
    recent.answer(200, new Uint8Array(500));
    for (let i = 0; i < 20; i++) step(vms);
    expect(old.call).toBeDefined();
  });

  it('is not lost to a clock that is set back', () => {
    const { vms } = startedVms(2);
    vms[0]!.host.nowMs -= 3_600_000;
    step([vms[1]!]);
    expect(vms[1]!.call).toBeDefined();
  });
});

describe('shared data', () => {
  it('are of the filters with the same formats only, but for retry budgets: others still drain after an upgrade', () => {
    const { host, vms } = startedVms(2);
    vms[0]!.request({ 'x-wardrop-key': 'k' });
    step(vms);
    const formats = [SNAPSHOT_FORMAT, REPORT_FORMAT, DISPLACED_FORMAT].join('.');
    const shared = [...host.shared.keys()].filter((key) => !key.startsWith('wardrop/retries/'));
    expect(shared).toContain(`wardrop/${formats}/lease/0/west`);
    expect(shared.filter((key) => !key.startsWith(`wardrop/${formats}/`))).toEqual([]);
  });
});

describe('the call', () => {
  it('is repeated at once after news, and after 304 when the server held it', () => {
    const { host, vms } = startedVms(1);
    const [vm] = vms;
    deliver(vm!, sketch(engines, { version: 2 }));
    expect(vm!.call?.headers).toContainEqual(['x-wardrop-snapshot', '2']);
    host.nowMs += 1000;
    vm!.answer(304);
    expect(vm!.call).toBeDefined();
  });

  it('waits a little when the server has nothing new and does not hold it', () => {
    const { vms } = startedVms(1);
    vms[0]!.answer(304);
    expect(vms[0]!.call).toBeUndefined();
    step(vms);
    expect(vms[0]!.call).toBeDefined();
  });

  it.each([undefined, 401, 500, 204])(
    'pauses longer and longer, up to 1 s, after a failure: %s',
    (status) => {
      const { host, vms } = startedVms(1);
      const [vm] = vms;
      const pauses: number[] = [];
      for (let i = 0; i < 15; i++) {
        vm!.answer(status);
        const failed = host.nowMs;
        while (!vm!.call) step(vms);
        pauses.push(host.nowMs - failed);
      }
      expect(pauses.slice(0, 3)).toEqual([100, 200, 300]);
      expect(Math.max(...pauses)).toBe(1000);
      vm!.tick();
      expect(host.metrics.get('wardrop_sync_failures')).toBe(15);
      expect(host.logs.filter((line) => line.includes('sync fails'))).toHaveLength(1);
      vm!.answer(304);
      expect(host.logs.at(-1)).toContain('sync works again');
    },
  );

  it('pauses after a snapshot that it refuses', () => {
    const { host, vms } = startedVms(1);
    vms[0]!.answer(200, new Uint8Array(500));
    expect(vms[0]!.call).toBeUndefined();
    expect(host.logs.some((line) => line.includes('snapshot refused'))).toBe(true);
  });

  it('is made anew when its answer never comes', () => {
    const { vms } = startedVms(1);
    const lost = vms[0]!.call;
    for (let i = 0; i < 70; i++) step(vms);
    expect(vms[0]!.call).not.toBe(lost);
  });

  it('carries a token of any length that a configuration takes', () => {
    const vm = new Host(module).startVm({ frontendId: 'west', syncToken: 't'.repeat(4096) });
    vm.tick();
    const credentials = vm.call!.headers.find(([name]) => name === 'authorization')![1];
    expect(credentials).toHaveLength('Bearer '.length + 4096);
  });

  it('may bring an older version: the control server decides', () => {
    const { vms } = startedVms(1);
    deliver(vms[0]!, sketch(engines, { version: 9 }));
    deliver(vms[0]!, sketch([{ weight: 0 }, { weight: 1 }], { version: 3 }));
    expect(vms[0]!.request({ 'x-session-id': 'a' }).endpoints[0]).toBe('10.0.1.0:8000');
  });
});

describe('the other VMs', () => {
  it('install a new snapshot on their next tick and route alike', () => {
    const { host, vms } = startedVms(3);
    deliver(vms[0]!, sketch([{ weight: 0 }, { weight: 1 }], { version: 2 }));
    step(vms);
    for (const vm of vms) expect(vm.request({ 'x-session-id': 'a' }).endpoints[0]).toBe('10.0.1.0:8000');
    expect(host.metrics.get('wardrop_snapshot_version')).toBe(2);
  });

  it('refuse shared bytes that are damaged, once, and keep theirs', () => {
    const { host, vms } = startedVms(2);
    deliver(vms[0]!, sketch(engines, { version: 2 }));
    const key = [...host.shared.keys()].find((name) => name.includes('snapshot'))!;
    const damaged = encodeSnapshot(sketch(engines, { version: 2 }));
    damaged[200]! ^= 1;
    host.shared.set(key, { value: damaged, cas: host.nextCas() });
    for (let i = 0; i < 5; i++) step(vms);
    expect(host.metrics.get('wardrop_snapshot_refusals')).toBe(1);
    expect(vms[1]!.request({ 'x-session-id': 'a' }).forwarded).toBe(true);
  });
});

describe('the age of the snapshot', () => {
  it('is the time since the control server last confirmed it', () => {
    const { host, vms } = startedVms(2);
    vms[0]!.answer();
    for (let i = 0; i < 120; i++) {
      step(vms);
      if (vms[0]!.call) vms[0]!.answer();
    }
    expect(host.metrics.get('wardrop_snapshot_age_seconds')).toBe(12);
    while (!vms[0]!.call) step(vms);
    vms[0]!.answer(304);
    step(vms);
    expect(host.metrics.get('wardrop_snapshot_age_seconds')).toBe(0);
  });
});

describe('the usage report', () => {
  it('counts every request by engine and outcome, over all VMs', () => {
    const { host, vms } = startedVms(2);
    const open: Stream[] = [];
    const expected = { planned: 0, ended: 0, ok: 0, client: 0, server: 0, retried: 0, silent: 0, whole: 0 };
    for (let i = 0; i < 400; i++) {
      const stream = vms[i % 2]!.request({ 'x-session-id': `k${i}` });
      expected.planned++;
      host.nowMs += 250;
      if (i % 5 === 0 && stream.retries > 0) {
        stream.respond(200, { attempts: 2 });
        expected.retried++;
        expected.ok++;
      } else if (i % 5 === 1) {
        stream.respond(404);
        expected.client++;
      } else if (i % 5 === 2) {
        expected.silent++;
      } else {
        stream.respond(200).responseBody('x').responseBody('y', true);
        expected.ok++;
        expected.whole++;
      }
      if (i % 5 === 4) {
        open.push(stream);
      } else {
        stream.end();
        expected.ended++;
      }
      if (i % 10 === 0) step(vms);
    }
    const sum = (field: keyof EngineUsage) =>
      [...totals(vms).flows.values()].reduce((total, row) => total + Number(row[field]), 0);
    expect(totals(vms).pool).toMatchObject({ offered: 400, clientRetries: 0, shed: 0, unavailable: 0 });
    expect(sum('planned') + sum('diverted')).toBe(400);
    expect(sum('ended')).toBe(expected.ended);
    expect(sum('status2xx')).toBe(expected.ok);
    expect(sum('status4xx')).toBe(expected.client);
    expect(sum('noResponse')).toBe(expected.silent);
    expect(sum('retries')).toBe(expected.retried);
    expect(sum('failures')).toBe(expected.retried);
    expect(sum('wholeCount')).toBe(expected.whole);
    expect(sum('wholeSecondsSum')).toBeCloseTo(expected.whole * 0.25, 6);

    for (const stream of open) stream.end();
    expect(sum('planned') + sum('diverted') - sum('ended')).toBe(0);
  });

  it('comes back to nothing in flight, however requests end', () => {
    const { vms } = startedVms(1);
    const [vm] = vms;
    const ways: ((stream: Stream) => void)[] = [
      (stream) => stream.end(),
      (stream) => stream.vanish(),
      (stream) => stream.respond(200).end(),
      (stream) => stream.respond(200).responseBody('x').vanish(),
      (stream) => stream.respond(503, { attempts: stream.retries + 1 }).end(),
      (stream) => stream.respond(200, { attempts: 2 }).responseBody('x').end(),
    ];
    for (let i = 0; i < 600; i++) {
      const stream = vm!.request(i % 7 === 0 ? {} : { 'x-session-id': `k${i % 50}` });
      ways[i % ways.length]!(stream);
      if (i % 50 === 0) deliver(vm!, sketch(engines, { version: i + 2 }));
    }
    sweep(vm!);
    for (const row of totals(vms).flows.values()) expect(row.planned + row.diverted - row.ended).toBe(0);
  });

  it('counts what was refused, what had no key and what a client retried', () => {
    const { vms } = startedVms(1);
    const [vm] = vms;
    deliver(vm!, sketch(engines, { version: 2, pool: { shedFraction: 1 } }));
    for (let i = 0; i < 3; i++) vm!.request({ 'x-session-id': 'a' });
    deliver(vm!, sketch([{ weight: 1, ready: false }], { version: 3 }));
    for (let i = 0; i < 2; i++) vm!.request();
    deliver(vm!, sketch(engines, { version: 4 }));
    vm!.request({ 'x-session-id': 'a', 'x-stainless-retry-count': '2' });
    vm!.request({ ':method': 'GET' }, { ended: true });
    expect(totals(vms).pool).toMatchObject({
      offered: 5,
      clientRetries: 1,
      shed: 3,
      unavailable: 2,
      withoutKey: 2,
    });
  });

  it('keeps the counts of a pool and its engines while they are away for less than a minute', () => {
    const { host, vms } = startedVms(1);
    const [vm] = vms;
    for (let i = 0; i < 10; i++)
      vm!
        .request({ 'x-session-id': `k${i}` })
        .respond(200)
        .end();
    deliver(vm!, { ...sketch(engines, { version: 2 }), models: [], pools: [], engines: [], nearest: [] });
    host.nowMs += 30_000;
    deliver(vm!, sketch(engines, { version: 3 }));
    expect(totals(vms).pool.offered).toBe(10);
    deliver(vm!, { ...sketch(engines, { version: 4 }), models: [], pools: [], engines: [], nearest: [] });
    host.nowMs += 61_000;
    deliver(vm!, { ...sketch(engines, { version: 5 }), models: [], pools: [], engines: [], nearest: [] });
    deliver(vm!, sketch(engines, { version: 6 }));
    expect(report(vms).vms[0]!.pools).toEqual([]);
  });

  it('holds what a VM wrote a moment after the caller looked at the clock', () => {
    const { host, vms } = startedVms(2);
    const [caller, other] = vms as [Vm, Vm];
    host.nowMs += 101;
    other.tick();
    host.nowMs -= 1;
    caller.answer(304);
    caller.tick();
    expect(decodeUsageReport(caller.call!.body).vms).toHaveLength(2);
  });

  it('leaves out a VM that is gone, and gives its place to the next', () => {
    const { host, vms } = startedVms(3);
    const gone = vms.pop()!;
    gone.request({ 'x-session-id': 'a' });
    gone.tick();
    expect(report(vms).vms).toHaveLength(3);
    for (let i = 0; i < 60; i++) step(vms);
    expect(report(vms).vms).toHaveLength(2);
    step(vms, 60_000);
    vms.push(host.startVm());
    expect(report(vms).vms).toHaveLength(3);
    expect([...host.shared.keys()].filter((name) => name.includes('usage'))).toHaveLength(3);
  });
});
