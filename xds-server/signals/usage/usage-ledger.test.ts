import fc from 'fast-check';
import { beforeEach, describe, expect, it } from 'vitest';
import { MOST_LOADS_TOLD } from '../../../wire/layout.js';
import {
  type EngineUsage,
  type LoadUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
  type VmUsage,
} from '../../../wire/usage-report.js';
import { UsageLedger } from './usage-ledger.js';

const engineUsage = (planned: number): EngineUsage => ({
  ...noEngineUsage(1n, 2n),
  planned,
  ended: planned,
  status2xx: planned,
  firstTokenSecondsSum: planned / 10,
  firstTokenCount: planned,
});

const sequences = new Map<bigint, number>();

/** Every VM numbers what it writes from 1 on. */
function nextOf(incarnation: bigint): number {
  const sequence = (sequences.get(incarnation) ?? 0) + 1;
  sequences.set(incarnation, sequence);
  return sequence;
}

beforeEach(() => sequences.clear());

function reportOf(counts: ReadonlyMap<bigint, number>): UsageReport {
  return {
    vms: [...counts].map(([incarnation, offered]) => ({
      ...noVmUsage(incarnation, nextOf(incarnation)),
      pools: [{ ...noPoolUsage(1n), offered }],
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
      sequences.clear();
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
        seconds += delta?.engines[0]?.firstTokenSecondsSum ?? 0;
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

it('what a VM counted that was left out of the first reports of its node belongs to no time either', () => {
  for (const others of [[1n], []]) {
    const ledger = new UsageLedger();
    const accept = (counts: readonly (readonly [bigint, number])[], nowMs: number) =>
      ledger.accept('n', reportOf(new Map(counts)), nowMs);
    const known = others.map((vm) => [vm, 70] as const);
    accept(known, 1_000);
    accept(known, 2_000);
    // It has written for minutes.
    sequences.set(2n, 5_000);
    expect(accept([...known, [2n, 1_000_000]], 3_000)?.engines.map(({ planned }) => planned)).toEqual(
      others.map(() => 0),
    );
    expect(accept([...known, [2n, 1_000_040]], 4_000)).toMatchObject({ pools: [{ offered: 40 }] });
    expect(accept([...known, [2n, 1_000_040], [3n, 5]], 5_000)).toMatchObject({ pools: [{ offered: 5 }] });
    sequences.clear();
  }
});

it('after a hold-up, reports count for all of it that were read within a second, and the next one too', () => {
  const ledger = new UsageLedger();
  const accept = (offered: number, nowMs: number) =>
    ledger.accept('n', reportOf(new Map([[1n, offered]])), nowMs);
  accept(0, 1_000);
  accept(10, 2_000);
  ledger.noteHoldUp(14_000);
  expect(accept(15, 14_000)).toMatchObject({ fromMs: 2_000, toMs: 14_000, pools: [{ offered: 5 }] });
  ledger.noteHoldUp(14_500);
  expect(accept(130, 14_600)).toMatchObject({ fromMs: 2_000, toMs: 14_600, pools: [{ offered: 115 }] });
  expect(accept(140, 15_600)).toMatchObject({ fromMs: 2_000, toMs: 15_600 });
  expect(accept(150, 16_600)).toMatchObject({ fromMs: 15_600, toMs: 16_600 });
});

it('a report is news when a VM in it is new or has numbered it higher, whatever it counts', () => {
  const ledger = new UsageLedger();
  const first = reportOf(new Map([[1n, 5]]));
  const idle = reportOf(new Map([[1n, 5]]));
  expect(ledger.isNews('n', first)).toBe(true);
  ledger.accept('n', first, 1_000);
  expect(ledger.isNews('n', first)).toBe(false);
  expect(ledger.isNews('n', { vms: [] })).toBe(false);
  expect(ledger.isNews('n', idle)).toBe(true);
  expect(ledger.isNews('o', first)).toBe(true);
  ledger.accept('n', idle, 2_000);
  expect(ledger.isNews('n', first)).toBe(false);
  expect(ledger.isNews('n', { vms: [...idle.vms, noVmUsage(2n, 1)] })).toBe(true);
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
  const vm = (incarnation: bigint, sent: number, ended: number) => ({
    ...noVmUsage(incarnation, nextOf(incarnation)),
    replicas: [{ engine: 2n, replica: 3n, sent, ended }],
  });
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

it('a replica that a VM leaves out of its report has ended what it had under way', () => {
  const ledger = new UsageLedger();
  const report = (replicas: VmUsage['replicas']) => ({
    vms: [{ ...noVmUsage(1n, nextOf(1n)), replicas }],
  });
  const row = { engine: 2n, replica: 3n, sent: 10, ended: 7 };
  ledger.accept('n', report([row]), 1_000);
  expect(ledger.accept('n', report([]), 2_000)!.replicas).toEqual([{ ...row, sent: 0, ended: 3 }]);
  expect(ledger.accept('n', report([{ ...row, sent: 14, ended: 13 }]), 3_000)!.replicas).toEqual([]);
  expect(ledger.accept('n', report([{ ...row, sent: 15, ended: 14 }]), 4_000)!.replicas).toEqual([
    { ...row, sent: 1, ended: 1 },
  ]);
});

it('what is under way is counted once for all that ask at one time, as for every engine, and anew after each report', () => {
  const ledger = new UsageLedger();
  const report = (sent: number) => ({
    vms: [{ ...noVmUsage(1n, nextOf(1n)), replicas: [{ engine: 2n, replica: 3n, sent, ended: 0 }] }],
  });
  ledger.accept('n', report(1), 1_000);
  const counted = ledger.inFlight(1_000)!;
  expect(ledger.inFlight(1_000)).toBe(counted);
  expect(ledger.replicasInFlight(1_000)).toBe(ledger.replicasInFlight(1_000));
  ledger.accept('n', report(5), 1_000);
  expect([...ledger.inFlight(1_000)!.values()]).toEqual([5]);
  expect(ledger.inFlight(9_000)).toBeUndefined();
  ledger.drop('n');
  expect([...ledger.inFlight(9_000)!.values()]).toEqual([]);
});

it('a row that a VM has forgotten and then reports again counts from zero', () => {
  const ledger = new UsageLedger();
  ledger.accept('n', reportOf(new Map([[1n, 100]])), 1_000);
  ledger.accept('n', { vms: [noVmUsage(1n, nextOf(1n))] }, 2_000);
  expect(ledger.accept('n', reportOf(new Map([[1n, 7]])), 3_000)).toMatchObject({ pools: [{ offered: 7 }] });
});

describe('loads of replicas', () => {
  const load = (replica: number, reports: number, sum = reports / 2): LoadUsage => ({
    engine: 2n,
    replica: BigInt(replica),
    reports,
    garbled: 0,
    sums: [0, sum, 0, 0, 0, 0],
    counts: [0, reports, 0, 0, 0, 0],
  });
  const loadsOf = (from: number, to: number, reports: number) =>
    Array.from({ length: to - from }, (_, at) => load(from + at, reports));
  const report = (loads: readonly LoadUsage[], incarnation = 1n): UsageReport => ({
    vms: [{ ...noVmUsage(incarnation, nextOf(incarnation)), loads }],
  });

  it('count on when reports tell of others for a while', () => {
    const ledger = new UsageLedger();
    ledger.accept('n', { vms: [] }, 1_000);
    ledger.accept('n', report([load(1, 10)]), 2_000);
    ledger.accept('n', report([load(2, 5)]), 3_000);
    expect(ledger.accept('n', report([load(1, 12)]), 4_000)?.loads).toEqual([load(1, 2)]);
  });

  it('count from zero when they have become fewer', () => {
    const ledger = new UsageLedger();
    ledger.accept('n', { vms: [] }, 1_000);
    ledger.accept('n', report([load(1, 10)]), 2_000);
    expect(ledger.accept('n', report([load(1, 3)]), 3_000)?.loads).toEqual([load(1, 3)]);
    expect(ledger.accept('n', report([load(1, 4, 0.2)]), 4_000)?.loads).toEqual([load(1, 4, 0.2)]);
  });

  it('of a node that is not known begin with the first report that may have all of them', () => {
    const ledger = new UsageLedger();
    const many = (from: number, reports: number) => report(loadsOf(from, from + MOST_LOADS_TOLD, reports));
    ledger.accept('n', many(0, 5), 1_000);
    expect(ledger.accept('n', many(5_000, 5), 2_000)?.loads).toEqual([]);
    expect(ledger.accept('n', many(0, 6), 3_000)?.loads).toEqual(loadsOf(0, MOST_LOADS_TOLD, 1));
    // Fewer are all that there are.
    expect(ledger.accept('n', report([load(9_999, 5)]), 4_000)?.loads).toEqual([load(9_999, 5)]);
    // Of a VM that has begun since, all is new.
    const delta = ledger.accept(
      'n',
      { vms: [...many(0, 7).vms, ...report(loadsOf(0, MOST_LOADS_TOLD, 3), 2n).vms] },
      5_000,
    );
    expect(delta?.loads).toEqual(loadsOf(0, MOST_LOADS_TOLD, 4));
  });

  it('are forgotten when they are not told for six minutes, and not within three', () => {
    const ledger = new UsageLedger();
    ledger.accept('n', { vms: [] }, 0);
    for (let at = 1; at <= 240; at++) {
      const hasFirst = [1, 19, 60, 200].includes(at);
      const loads = [load(2, at), ...(hasFirst ? [load(1, at)] : [])];
      const told = ledger
        .accept('n', report(loads), at * 10_000)!
        .loads.filter(({ replica }) => replica === 1n);
      expect(told.map(({ reports }) => reports)).toEqual(hasFirst ? [at === 19 ? 18 : at] : []);
    }
  });

  it('begin anew after a long silence, in which they may have started over', () => {
    const ledger = new UsageLedger();
    ledger.accept('n', { vms: [] }, 0);
    ledger.accept('n', report([load(1, 1_000, 300)]), 1_000);
    const restored = new UsageLedger();
    restored.restore(ledger.save());
    for (const each of [ledger, restored]) {
      const { loads } = each.accept('n', report([load(1, 1_010, 800)]), 3_600_000)!;
      expect(loads).toEqual([]);
      const next = each.accept('n', report([load(1, 1_020, 808)]), 3_601_000)!;
      expect(next.loads).toEqual([load(1, 10, 8)]);
    }
  });
});

it('remembers so many VMs of a node, however many follow each other, and counts what each has done', () => {
  const ledger = new UsageLedger();
  ledger.accept('n', reportOf(new Map([[1n, 5]])), 0);
  for (let second = 1; second <= 1_000; second++) {
    const counts = new Map([
      [1n, 5 + second],
      [BigInt(second + 1), 3],
    ]);
    expect(ledger.accept('n', reportOf(counts), second * 1_000)).toMatchObject({ pools: [{ offered: 4 }] });
  }
  expect(ledger.save().nodes[0]![1].vms).toHaveLength(256);
});

it('remembers so many rows of nodes that are gone, those that left last, and all of those that are there', () => {
  const ledger = new UsageLedger();
  const engines = Array.from({ length: 999 }, (_, engine) => noEngineUsage(1n, BigInt(engine)));
  const thousandRows = (offered: number): UsageReport => ({
    vms: [{ ...noVmUsage(7n, nextOf(7n)), pools: [{ ...noPoolUsage(1n), offered }], engines }],
  });
  for (let second = 0; second < 300; second++) {
    ledger.accept(`pod-${second}`, thousandRows(1), second * 1_000);
    ledger.accept('always-there', thousandRows(second), second * 1_000);
  }
  const known = Array.from({ length: 300 }, (_, second) => ledger.knows(`pod-${second}`));
  // 60 are not taken for gone yet.
  expect(known.indexOf(true)).toBe(300 - 61 - 100);
  expect(known.lastIndexOf(false)).toBe(300 - 61 - 101);
  expect(ledger.accept('always-there', thousandRows(302), 300_000)).toMatchObject({
    pools: [{ offered: 3 }],
  });
  // Whoever is back goes on where it was, and a stranger begins.
  expect(ledger.accept('pod-200', thousandRows(5), 300_000)).toMatchObject({ pools: [{ offered: 4 }] });
  expect(ledger.accept('pod-0', thousandRows(5), 300_000)).toBeUndefined();
});

it('forgets no VM that goes on reporting, however many share the name of a node', () => {
  const ledger = new UsageLedger();
  const counts = (offered: number) =>
    reportOf(new Map(Array.from({ length: 400 }, (_, vm) => [BigInt(vm), offered] as const)));
  ledger.accept('n', counts(1), 0);
  for (let at = 1; at < 4; at++) {
    expect(ledger.accept('n', counts(1 + at), at * 50_000)).toMatchObject({ pools: [{ offered: 400 }] });
  }
});

it('keeps the classes of a pool apart and adds histograms bucket by bucket', () => {
  const ledger = new UsageLedger();
  const report = (urgent: number, usual: number, buckets: readonly number[]): UsageReport => ({
    vms: [1n, 2n].map((incarnation) => ({
      ...noVmUsage(incarnation, nextOf(incarnation)),
      pools: [
        { ...noPoolUsage(1n, 5), offered: urgent },
        { ...noPoolUsage(1n), offered: usual },
      ],
      latencies: [{ engine: 2n, firstTokens: buckets, paces: [] }],
    })),
  });
  ledger.accept('n', report(1, 2, [0, 1, 2]), 1_000);
  expect(ledger.accept('n', report(4, 7, [5, 1, 3]), 2_000)).toMatchObject({
    pools: [
      { priority: 5, offered: 6 },
      { priority: 0, offered: 10 },
    ],
    latencies: [{ firstTokens: [10, 0, 2] }],
  });
});
