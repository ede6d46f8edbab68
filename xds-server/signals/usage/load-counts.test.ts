import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { id64 } from '../../../wire/hash.js';
import type { EngineLoadCounts } from '../../fleet/load-report.js';
import { LoadCounts } from './load-counts.js';

const engine = (engineId: string, counts: Partial<EngineLoadCounts> = {}): EngineLoadCounts => ({
  engineId,
  issued: 0,
  succeeded: 0,
  failed: 0,
  inProgress: 0,
  ...counts,
});
const one = (counts: Partial<EngineLoadCounts>, dropped = 0) => [
  { poolId: 'm', dropped, engines: [engine('a', counts)] },
];

describe('load reports', () => {
  it('add up to the usage report of a filter, whatever the pools, engines and priorities', () => {
    const counts = fc.record({
      engineId: fc.constantFrom('a', 'b'),
      issued: fc.nat(9),
      succeeded: fc.nat(9),
      failed: fc.nat(9),
      inProgress: fc.nat(9),
    });
    const pool = fc.record({
      poolId: fc.constantFrom('m', 'n'),
      dropped: fc.nat(3),
      engines: fc.array(counts, { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(pool, { maxLength: 3 }), { minLength: 1, maxLength: 5 }), (reports) => {
        const totals = new LoadCounts(7n);
        const [vm] = reports.map((report) => totals.add(report)).at(-1)!.vms;
        expect(vm).toMatchObject({ incarnation: 7n, sequence: reports.length });
        const all = reports.flat();
        const engines = all.flatMap((entry) => entry.engines);
        const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);
        const issued = sum(engines.map((entry) => entry.issued));
        expect(sum(vm!.pools.map(({ offered }) => offered))).toBe(
          issued + sum(all.map(({ dropped }) => dropped)),
        );
        expect(sum(vm!.engines.map(({ planned }) => planned))).toBe(issued);
        expect(sum(vm!.engines.map(({ failures }) => failures))).toBe(
          sum(engines.map(({ failed }) => failed)),
        );
        const last = reports.at(-1)!.flatMap((entry) => entry.engines);
        expect(sum(vm!.replicas.map(({ sent }) => sent))).toBe(sum(last.map(({ inProgress }) => inProgress)));
        for (const { ended, planned } of vm!.engines) expect(ended).toBeLessThanOrEqual(planned);
      }),
    );
  });

  it('count what a client broke off as ended, and nothing as ended twice', () => {
    const totals = new LoadCounts(1n);
    const endedByNone = () => totals.add([]).vms[0]!.engines[0]!.ended;
    const endedBy = (counts: Partial<EngineLoadCounts>) => totals.add(one(counts)).vms[0]!.engines[0]!.ended;
    expect(endedBy({ issued: 5, inProgress: 5 })).toBe(0);
    expect(endedBy({ succeeded: 2, inProgress: 3 })).toBe(2);
    expect(endedByNone()).toBe(5);
    // Under way since before the first report.
    expect(endedBy({ inProgress: 2 })).toBe(5);
  });

  it('forget pools and engines of which nothing is told any more, however many come and go', () => {
    const totals = new LoadCounts(1n);
    let report = totals.add([]);
    for (let second = 0; second < 1_500; second++) {
      const stays = { poolId: 'stays', dropped: 0, engines: [engine('a', { issued: 1, succeeded: 1 })] };
      const comes = { poolId: `m${second}`, dropped: 1, engines: [engine(`e${second}`, { issued: 1 })] };
      report = totals.add([stays, comes]);
    }
    const [vm] = report.vms;
    expect([vm!.pools.length, vm!.engines.length, vm!.replicas.length]).toEqual([601, 601, 601]);
    expect(vm!.engines.find((row) => row.engine === id64('a'))).toMatchObject({ planned: 1_500 });
  });

  it('name what they count as filters do', () => {
    const [vm] = new LoadCounts(1n).add(one({ issued: 1, inProgress: 1 }, 2)).vms;
    expect(vm!.pools[0]).toMatchObject({ pool: id64('m'), priority: 0, offered: 3, shed: 2 });
    expect(vm!.engines[0]).toMatchObject({ pool: id64('m'), engine: id64('a'), planned: 1 });
  });
});
