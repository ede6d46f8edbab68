import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { EngineUsage, UsageReport } from '../../wire/usage-report.js';
import { UsageLedger } from './usage-ledger.js';

const engineUsage = (planned: number): EngineUsage => ({
  pool: 1n,
  engine: 2n,
  planned,
  diverted: 0,
  ended: planned,
  failures: 0,
  status2xx: planned,
  status4xx: 0,
  status5xx: 0,
  noResponse: 0,
  retries: 0,
  firstByteSecondsSum: planned / 10,
  firstByteCount: planned,
});

function reportOf(counts: ReadonlyMap<bigint, number>): UsageReport {
  return {
    vms: [...counts].map(([incarnation, offered]) => ({
      incarnation,
      pools: [{ pool: 1n, offered, clientRetries: 0, shed: 0, unavailable: 0, withoutKey: 0 }],
      engines: [engineUsage(offered)],
    })),
  };
}

type Step =
  | { readonly kind: 'count'; readonly vm: number; readonly requests: number }
  | { readonly kind: 'restart'; readonly vm: number }
  | { readonly kind: 'report' | 'lose' }
  | { readonly kind: 'repeat'; readonly back: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('count' as const), vm: fc.nat(2), requests: fc.nat(50) }),
  fc.record({ kind: fc.constant('restart' as const), vm: fc.nat(2) }),
  fc.record({ kind: fc.constantFrom('report' as const, 'lose' as const) }),
  fc.record({ kind: fc.constant('repeat' as const), back: fc.nat(5) }),
);

it('lost, repeated and late reports and restarted VMs give the true total since the first report', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ledger = new UsageLedger();
      const running = [10n, 11n, 12n].map((incarnation) => ({ incarnation, count: 0 }));
      const sent: UsageReport[] = [];
      let nextIncarnation = 100n;
      let nowMs = 1_000;
      let truth = 0;
      let reported = 0;
      let seconds = 0;
      const send = (report: UsageReport) => {
        nowMs += 1_000;
        const delta = ledger.accept('n', report, nowMs);
        reported += delta?.pools[0]?.offered ?? 0;
        seconds += delta?.engines[0]?.firstByteSecondsSum ?? 0;
      };
      const now = () => reportOf(new Map(running.map(({ incarnation, count }) => [incarnation, count])));
      send(now());
      for (const item of steps) {
        if (item.kind === 'count') {
          running[item.vm]!.count += item.requests;
          truth += item.requests;
        } else if (item.kind === 'restart') {
          // What a VM counted after its last report dies with it, so it reports before it ends.
          sent.push(now());
          send(sent.at(-1)!);
          running[item.vm] = { incarnation: nextIncarnation++, count: 0 };
        } else if (item.kind === 'repeat') {
          const old = sent.at(-1 - item.back);
          if (old !== undefined) send(old);
        } else {
          sent.push(now());
          if (item.kind === 'report') send(sent.at(-1)!);
        }
      }
      send(now());
      expect(reported).toBe(truth);
      expect(seconds).toBeCloseTo(truth / 10, 6);
    }),
  );
});

it('what a node counted before its first report belongs to no time and is left out', () => {
  const ledger = new UsageLedger();
  expect(ledger.accept('n', reportOf(new Map([[1n, 1_000_000]])), 1_000)).toBeUndefined();
  expect(ledger.accept('n', reportOf(new Map([[1n, 1_000_040]])), 2_000)).toMatchObject({
    fromMs: 1_000,
    toMs: 2_000,
    pools: [{ offered: 40 }],
  });
});

it('adds up the VMs of a node', () => {
  const ledger = new UsageLedger();
  ledger.accept('n', { vms: [] }, 1_000);
  const counts = new Map([
    [1n, 3],
    [2n, 4],
  ]);
  expect(ledger.accept('n', reportOf(counts), 2_000)).toMatchObject({
    pools: [{ offered: 7 }],
    engines: [{ planned: 7 }],
  });
});

it('knows the requests under way of live VMs, and says nothing while a node is silent', () => {
  const ledger = new UsageLedger();
  const vm = (incarnation: bigint, planned: number, ended: number) => {
    const [usage] = reportOf(new Map([[incarnation, planned]])).vms;
    return { ...usage!, engines: usage!.engines.map((engine) => ({ ...engine, ended })) };
  };
  ledger.accept('n', { vms: [vm(1n, 10, 4), vm(2n, 8, 8)] }, 1_000);
  ledger.accept('o', { vms: [vm(3n, 5, 2)] }, 1_000);
  expect([...ledger.inFlight(1_000)!.values()]).toEqual([9]);
  // A VM that is gone takes its requests with it.
  ledger.accept('n', { vms: [vm(2n, 9, 8)] }, 5_000);
  expect(ledger.inFlight(5_000)).toBeUndefined();
  ledger.accept('o', { vms: [vm(3n, 5, 2)] }, 5_000);
  expect([...ledger.inFlight(5_000)!.values()]).toEqual([4]);
  ledger.accept('n', { vms: [vm(2n, 9, 8)] }, 66_000);
  expect([...ledger.inFlight(66_000)!.values()]).toEqual([1]);
});
