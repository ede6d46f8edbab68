import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Fleet } from '../../fleet/fleet.js';
import { holdLast, type Loss, type ReplicaPast } from './last-stand.js';

function fleetOf(pools: Readonly<Record<string, readonly string[]>>, engineIds: readonly string[]): Fleet {
  return {
    engines: engineIds.map((id) => ({ id })),
    pools: Object.entries(pools).map(([id, ids]) => ({ id, engineIds: ids })),
  } as unknown as Fleet;
}

const NOW_MS = 200_000;

const lost = (lastReadyMs: number | undefined, loss: Loss = 'silent', wasInService = false): ReplicaPast => ({
  lastReadyMs,
  loss,
  wasInService,
  upSinceMs: undefined,
});

const up = (upSinceMs: number): ReplicaPast => ({ ...lost(NOW_MS), wasInService: true, upSinceMs });

function hold(
  observed: readonly (readonly boolean[])[],
  past: readonly (readonly ReplicaPast[])[],
  nowMs = NOW_MS,
) {
  const ids = observed.map((_, at) => `e${at}`);
  return holdLast(fleetOf({ m: ids }, ids), observed, (engine, replica) => past[engine]![replica]!, nowMs);
}

describe('a pool of which every replica seems lost', () => {
  it('keeps those that were lost shortly before the last one', () => {
    const { readiness, heldPools } = hold(
      [[false, false], [false]],
      [[lost(100_000), lost(60_000)], [lost(95_000)]],
    );
    expect(readiness).toEqual([[true, false], [true]]);
    expect(heldPools).toEqual(['m']);
  });

  it('leaves out those that are surely lost, unless all are: then the last one stays', () => {
    expect(hold([[false], [false]], [[lost(100, 'refused')], [lost(90)]]).readiness).toEqual([
      [false],
      [true],
    ]);
    expect(hold([[false], [false]], [[lost(100, 'refused')], [lost(90, 'refused')]]).readiness).toEqual([
      [true],
      [false],
    ]);
  });

  it('keeps the likeliest to answer where none was lost in doubt shortly before: drained, unready, failing, then the last one', () => {
    const keptOf = (...pasts: readonly ReplicaPast[]) => {
      const { readiness } = hold(
        pasts.map(() => [false]),
        pasts.map((each) => [each]),
      );
      return readiness.flatMap(([isReady], at) => (isReady ? [at] : []));
    };
    const refused = lost(100_000, 'refused');
    expect(keptOf(lost(60_000, 'unready'), refused)).toEqual([0]);
    expect(keptOf(lost(60_000, 'unready'), lost(70_000, 'unready'), refused)).toEqual([1]);
    expect(keptOf(lost(50_000, 'failing'), refused)).toEqual([0]);
    expect(keptOf(lost(60_000, 'silent'), refused)).toEqual([1]);
    const others = [lost(60_000, 'unready'), lost(50_000, 'failing'), refused];
    expect(keptOf(lost(40_000, 'drained'), ...others)).toEqual([0]);
  });

  it('keeps everything when nothing was ever ready', () => {
    expect(hold([[false], [false]], [[lost(undefined)], [lost(undefined)]]).readiness).toEqual([
      [true],
      [true],
    ]);
  });
});

describe('a pool that was wholly lost, of which one replica is back', () => {
  const held = lost(100_000, 'silent', true);
  const observed = [[true], [false, false, false]];

  it('keeps for 3 s those that were held besides, whoever is surely lost or was not held excepted', () => {
    const past = [[up(NOW_MS - 2_999)], [held, lost(100_000, 'refused', true), lost(20_000)]];
    const { readiness, heldPools, heldEngines } = hold(observed, past);
    expect(readiness).toEqual([[true], [true, false, false]]);
    expect([heldPools, [...heldEngines]]).toEqual([[], []]);
    expect(hold(observed, past, NOW_MS + 1).readiness).toEqual(observed);
  });

  it('keeps nobody who was ready after it, or where another had been up before', () => {
    const seen = lost(NOW_MS - 500, 'silent', true);
    expect(hold(observed, [[up(NOW_MS - 1_000)], [seen, seen, seen]]).readiness).toEqual(observed);
    const [first, second] = [[up(NOW_MS - 1_000), up(1_000)], [held]];
    expect(hold([[true, true], [false]], [first!, second!]).readiness).toEqual([[true, true], [false]]);
  });
});

it('no pool with replicas is ever empty, and one with a replica that has been ready for 3 s is as it was observed', () => {
  const replica = fc.record({
    ready: fc.boolean(),
    lastReadyMs: fc.option(fc.nat(50_000), { nil: undefined }),
    loss: fc.constantFrom<Loss>('drained', 'unready', 'silent', 'failing', 'refused'),
    wasInService: fc.boolean(),
    upSinceMs: fc.constant(NOW_MS - 3_000),
  });
  const engines = fc.array(fc.array(replica, { minLength: 1, maxLength: 3 }), { minLength: 2, maxLength: 5 });
  fc.assert(
    fc.property(engines, (list) => {
      const ids = list.map((_, at) => `e${at}`);
      const observed = list.map((replicas) => replicas.map(({ ready }) => ready));
      const pools = { p: ids.slice(0, -1), q: ids.slice(1) };
      const { readiness, heldPools } = holdLast(
        fleetOf(pools, ids),
        observed,
        (at, r) => list[at]![r]!,
        NOW_MS,
      );
      for (const [id, members] of Object.entries(pools)) {
        const at = members.map((member) => ids.indexOf(member));
        expect(at.some((engine) => readiness[engine]!.includes(true))).toBe(true);
        expect(heldPools.includes(id)).toBe(!at.some((engine) => observed[engine]!.includes(true)));
      }
      if (heldPools.length === 0) expect(readiness).toEqual(observed);
    }),
  );
});
