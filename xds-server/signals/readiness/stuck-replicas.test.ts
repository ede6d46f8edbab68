import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import { noEngineUsage, noVmUsage } from '../../../wire/usage-report.js';
import type { Engine } from '../../fleet/fleet.js';
import { UsageLedger } from '../usage/usage-ledger.js';
import { StuckReplicas } from './stuck-replicas.js';

const [A, B, C] = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];
const engine = { id: 'e', endpoints: [A, B, C] } as unknown as Engine;
const inFlight = (a: number, b = 3, c = 3) =>
  new Map([A, B, C].map((address, at) => [address, [a, b, c][at]!]));

class Trial {
  readonly replicas = new StuckReplicas();
  mayServe = (_address: string): boolean => true;

  /** Replicas usually end ten requests a second. */
  constructor() {
    for (const address of [A, B, C]) {
      this.replicas.addReplica(address, 0, -62_000, -62_000);
      this.replicas.addReplica(address, 600, -2_000, -2_000);
    }
  }

  /** So many requests of the engine end, all of them well unless told. */
  end(count: number, failures = 0, noResponse = 0, well = count - failures - noResponse): void {
    this.replicas.addEngine('e', { ended: count, failures, noResponse, wholeCount: well });
  }

  out(nowMs: number, counts: ReadonlyMap<string, number> | undefined, of = engine): readonly string[] {
    return [...this.replicas.evaluate([of], this.mayServe, counts, nowMs).keys()];
  }

  /** A is found stuck at 1 s. */
  static stuck(): Trial {
    const trial = new Trial();
    trial.end(0);
    expect(trial.out(-2_000, inFlight(8))).toEqual([]);
    trial.end(60);
    expect(trial.out(1_000, inFlight(28))).toEqual([A]);
    return trial;
  }
}

describe('a replica is stuck', () => {
  it('that had eight requests, got twenty more and ends none while twenty end for each replica of its engine, and says so', () => {
    const trial = Trial.stuck();
    expect(trial.replicas.evaluate([engine], () => true, inFlight(28), 1_500).get(A)).toEqual({
      ...{ sinceMs: 1_000, inFlight: 28, endedElsewhere: 60 },
    });
  });

  it('not with fewer requests, not while fewer of others end, and not once it has ended one', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(7));
    trial.end(60);
    expect(trial.out(10_000, inFlight(8))).toEqual([]);
    trial.end(59);
    expect(trial.out(20_000, inFlight(28))).toEqual([]);
    trial.replicas.addReplica(A, 1, 10_500, 10_500);
    trial.end(60);
    expect(trial.out(30_000, inFlight(30))).toEqual([]);
    trial.end(60);
    expect(trial.out(40_000, inFlight(50))).toEqual([A]);
  });

  it('not before every Envoy has had the time to report', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(20));
    trial.end(1_000);
    expect(trial.out(2_900, inFlight(40))).toEqual([]);
    expect(trial.out(3_000, inFlight(40))).toEqual([A]);
  });

  it('not before it has got twenty more: what it usually ends may go elsewhere, and leave it with the longest', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(20));
    trial.end(1_000);
    expect(trial.out(60_000, inFlight(39))).toEqual([]);
    expect(trial.out(60_000, inFlight(40))).toEqual([A]);
  });

  it('not before that takes three times as long as it ever did before: a job may send many at a time', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(10));
    trial.replicas.addReplica(A, 40, 20_000, 20_000);
    trial.out(20_000, inFlight(10));
    trial.end(1_000);
    // It is remembered, but for less and less.
    expect(trial.out(74_000, inFlight(50))).toEqual([]);
    expect(trial.out(75_000, inFlight(50))).toEqual([A]);
  });

  it('not before it has missed twenty ends by its own pace: its requests may be long, and those of the engine many and short', () => {
    const trial = new Trial();
    for (let ms = 0; ms < 600_000; ms += 10_000) trial.replicas.addReplica(A, 5, ms, ms);
    trial.end(0);
    trial.out(600_000, inFlight(30));
    trial.end(10_000);
    expect(trial.out(630_000, inFlight(50))).toEqual([]);
    expect(trial.out(650_000, inFlight(50))).toEqual([A]);
  });

  it('not when it has ended nothing before, as one with a few long answers and nothing else', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(3_600_000, inFlight(12));
    trial.end(10_000);
    expect(trial.out(4_200_000, inFlight(40))).toEqual([]);
  });

  it('not beside one that fails all of its requests at once', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(20));
    trial.end(1_000, 1_000);
    expect(trial.out(10_000, inFlight(40))).toEqual([]);
  });

  it('not with fewer requests than most others have', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(8, 30, 30));
    for (const address of [B, C]) trial.replicas.addReplica(address, 30, 0, 0);
    trial.end(60);
    expect(trial.out(5_000, inFlight(29, 30, 30))).toEqual([]);
  });

  it('not for what it was left with when an operator drained it, or when it was down', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(20));
    trial.mayServe = (address) => address !== A;
    trial.end(60);
    expect(trial.out(5_000, inFlight(40))).toEqual([]);
    trial.mayServe = () => true;
    expect(trial.out(6_000, inFlight(40))).toEqual([]);
  });

  it('not without another replica, and not while nobody knows what is under way', () => {
    const alone = { id: 'e', endpoints: [A] } as unknown as Engine;
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(20), alone);
    trial.end(60);
    expect(trial.out(5_000, inFlight(40), alone)).toEqual([]);
    trial.out(6_000, inFlight(20));
    trial.end(60);
    expect(trial.out(10_000, undefined)).toEqual([]);
  });
});

it('nobody is found stuck who ended any of the last twenty for each replica', () => {
  const ends = fc.record({
    by: fc.constantFrom(A, B, B, B, C, C, C),
    count: fc.integer({ min: 1, max: 9 }),
    a: fc.integer({ min: 0, max: 80 }),
  });
  fc.assert(
    fc.property(fc.array(ends, { minLength: 30, maxLength: 200 }), (steps) => {
      const trial = new Trial();
      const ended: string[] = [];
      let before: readonly string[] = [];
      for (const [at, { by, count, a }] of steps.entries()) {
        trial.end(count);
        trial.replicas.addReplica(by, count, at * 500, at * 500);
        ended.push(...Array.from({ length: count }, () => by));
        const stuck = trial.out(at * 500, inFlight(a, 20, 20));
        for (const address of stuck.filter((each) => !before.includes(each))) {
          expect(ended.slice(-60)).not.toContain(address);
        }
        before = [...stuck];
      }
    }),
  );
});

it('nobody who serves well is found stuck, however many Envoys share the requests: most have none under way when they report', () => {
  const [envoys, replicas] = [64, 8];
  const random = new Random(1, 'healthy');
  const ledger = new UsageLedger();
  const { replicas: watch } = new Trial();
  const endpoints = Array.from({ length: replicas }, (_, at) => `10.0.0.${at}:80`);
  const served = { id: 'e', endpoints } as unknown as Engine;
  const nodes = Array.from({ length: envoys }, () => ({
    sequence: 0,
    ended: 0,
    endsMs: endpoints.map((): number[] => []),
  }));
  const counts = nodes.map(() => endpoints.map(() => ({ sent: 0, ended: 0 })));
  for (let ms = 0; ms < 900_000; ms += 100) {
    // 50 requests a second, most of which take about a second, and some several.
    for (let request = 0; request < 5; request++) {
      const [node, replica] = [
        random.integer({ min: 0, max: envoys - 1 }),
        random.integer({ min: 0, max: replicas - 1 }),
      ];
      nodes[node]!.endsMs[replica]!.push(ms + 1_000 * Math.exp(random.normal()));
      counts[node]![replica]!.sent++;
    }
    for (const [at, node] of nodes.entries()) {
      if (ms % 500 !== (at % 5) * 100) continue;
      const rows = node.endsMs.flatMap((endsMs, replica) => {
        const left = endsMs.filter((endMs) => endMs > ms);
        const count = counts[at]![replica]!;
        node.ended += count.sent - count.ended - left.length;
        count.ended = count.sent - left.length;
        node.endsMs[replica] = left;
        return left.length === 0 ? [] : [{ engine: 2n, replica: BigInt(replica), ...count }];
      });
      const engines = [
        { ...noEngineUsage(1n, 2n), planned: node.ended, ended: node.ended, wholeCount: node.ended },
      ];
      const vm = { ...noVmUsage(1n, ++node.sequence), engines, replicas: rows };
      const delta = ledger.accept(`${at}`, { vms: [vm] }, ms);
      for (const usage of delta?.engines ?? []) watch.addEngine('e', usage);
      for (const { replica, ended } of delta?.replicas ?? [])
        watch.addReplica(endpoints[Number(replica)]!, ended, ms - 500, ms);
    }
    const underWay = ledger.replicasInFlight(ms) ?? [];
    const inFlight = new Map(
      underWay.map(({ replica, inFlight }) => [endpoints[Number(replica)]!, inFlight]),
    );
    if (ms % 200 === 0) expect([...watch.evaluate([served], () => true, inFlight, ms).keys()]).toEqual([]);
  }
});

describe('a stuck replica', () => {
  it('is back at once when it has ended more than clients left or limits ended', () => {
    const trial = Trial.stuck();
    trial.replicas.addReplica(A, 2, 0, 0);
    trial.end(2, 1, 1);
    expect(trial.out(2_000, inFlight(18))).toEqual([A]);
    trial.replicas.addReplica(A, 1, 0, 0);
    trial.end(1);
    expect(trial.out(3_000, inFlight(17))).toEqual([]);
  });

  it('is not back when clients leave streams that had begun', () => {
    const trial = Trial.stuck();
    trial.replicas.addReplica(A, 2, 1_500, 1_500);
    trial.end(2, 0, 0, 0);
    expect(trial.out(2_000, inFlight(26))).toEqual([A]);
    trial.replicas.addStreams('e', 1);
    trial.replicas.addReplica(A, 1, 2_500, 2_500);
    trial.end(1, 0, 0, 0);
    expect(trial.out(3_000, inFlight(25))).toEqual([]);
  });

  it('with few requests left is tried after 10 s, and after 20 s if it is stuck again', () => {
    const trial = Trial.stuck();
    expect(trial.out(10_900, inFlight(7))).toEqual([A]);
    expect(trial.out(11_000, inFlight(7))).toEqual([]);
    trial.out(12_000, inFlight(8));
    trial.end(60);
    expect(trial.out(15_000, inFlight(28))).toEqual([A]);
    expect(trial.out(34_900, inFlight(0))).toEqual([A]);
    expect(trial.out(35_000, inFlight(0))).toEqual([]);
  });

  it('is found as soon after a time of which nothing was heard: that is no pause that it makes', () => {
    const trial = new Trial();
    trial.end(0);
    trial.out(0, inFlight(8));
    trial.replicas.addReplica(A, 300, 500, 30_500);
    trial.out(31_000, inFlight(8));
    trial.end(60);
    expect(trial.out(34_000, inFlight(28))).toEqual([A]);
  });

  it('is found as soon when it is stuck again: that limits end its requests at last is no pause that it usually makes', () => {
    const trial = Trial.stuck();
    trial.replicas.addReplica(A, 28, 10_900, 10_900);
    trial.end(28, 28);
    expect(trial.out(11_000, inFlight(0))).toEqual([]);
    trial.out(12_000, inFlight(8));
    trial.end(60);
    expect(trial.out(15_000, inFlight(28))).toEqual([A]);
  });

  it('starts over after a minute in service', () => {
    const trial = Trial.stuck();
    expect(trial.out(11_000, inFlight(0))).toEqual([]);
    trial.replicas.addReplica(A, 600, 71_000, 71_000);
    trial.out(71_500, inFlight(8));
    trial.end(60);
    expect(trial.out(75_000, inFlight(28))).toEqual([A]);
    expect(trial.out(85_000, inFlight(0))).toEqual([]);
  });

  it('that keeps its requests is not tried for 5 min, as they tell enough', () => {
    const trial = Trial.stuck();
    trial.end(1_000);
    expect(trial.out(300_900, inFlight(20))).toEqual([A]);
    expect(trial.out(301_000, inFlight(20))).toEqual([]);
  });

  it('stays out, but for 5 min at most, while nobody knows what is under way', () => {
    const trial = Trial.stuck();
    expect(trial.out(40_000, undefined)).toEqual([A]);
    expect(trial.out(301_000, undefined)).toEqual([]);
  });

  it('stays out with what it is stuck with', () => {
    const trial = Trial.stuck();
    expect(trial.out(41_000, inFlight(20))).toEqual([A]);
    expect(trial.out(42_000, inFlight(0))).toEqual([]);
  });

  it('is forgotten when its engine has no other replica any more', () => {
    const alone = { id: 'e', endpoints: [A] } as unknown as Engine;
    expect(Trial.stuck().out(2_000, inFlight(20), alone)).toEqual([]);
  });

  it('that is down, or gone, is forgotten', () => {
    const trial = Trial.stuck();
    trial.mayServe = (address) => address !== A;
    expect(trial.out(2_000, inFlight(20))).toEqual([]);
    const other = Trial.stuck();
    other.replicas.keep(new Set(['e']), new Set([B, C]));
    expect(other.out(2_000, inFlight(20), { ...engine, endpoints: [B, C] })).toEqual([]);
  });
});
