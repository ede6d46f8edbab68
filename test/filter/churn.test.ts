import { expect, it } from 'vitest';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { Random } from '../../simulator/random.js';
import type { SnapshotEngine, SnapshotPool, SnapshotView } from '../../wire/snapshot-view.js';
import { reportOf } from './reported.js';
import { deliver, sweep } from './snapshots.js';

/** Chance, the same in every run with the same seed. */
class Dice {
  readonly #random: Random;

  constructor(seed: number) {
    this.#random = new Random(seed, 'churn');
  }

  share(): number {
    return this.#random.unit();
  }

  is(chance: number): boolean {
    return this.share() < chance;
  }

  upTo(max: number): number {
    return this.#random.integer({ min: 0, max });
  }

  of<T>(list: readonly T[]): T {
    return list[this.upTo(list.length - 1)]!;
  }
}

/** Up to four engines, each with some of its replicas, and two pools of them. */
function anyFleet(dice: Dice, version: number): SnapshotView {
  const numbers = [0, 1, 2, 3].slice(0, 1 + dice.upTo(3));
  const pools = [
    anyPool(dice, 'all', numbers),
    anyPool(
      dice,
      'few',
      numbers.filter(() => dice.is(0.6)),
    ),
  ];
  return {
    version,
    planId: '0123456789abcdef',
    issuedAtMs: 1_700_000_000_000,
    frontendId: 'west',
    salt: dice.is(0.95) ? 'pepper' : 'salt',
    models: pools.map(({ id }, pool) => ({ name: id, pool })),
    pools,
    engines: numbers.map((engine) => anyEngine(dice, engine)),
    nearest: numbers,
  };
}

function anyEngine(dice: Dice, engine: number): SnapshotEngine {
  const first = dice.upTo(4);
  return {
    id: `e${engine}`,
    ...(dice.is(0.2) && { overflow: dice.share() }),
    ...(dice.is(0.2) && { replicaLimit: dice.upTo(8) }),
    ...(dice.is(0.3) && { busyAbove: dice.upTo(10) }),
    replicas: Array.from({ length: dice.upTo(4) }, (_, at) => ({
      address: `10.0.${engine}.${first + at}:8000`,
      ready: dice.is(0.85),
      ...(dice.is(0.1) && { overflow: dice.share() }),
    })),
  };
}

function anyPool(dice: Dice, id: string, engines: readonly number[]): SnapshotPool {
  const starts = new Set([
    0,
    ...Array.from({ length: dice.upTo(6) }, () => Math.floor(dice.share() * 2 ** 32)),
  ]);
  const segments = [...starts]
    .sort((a, b) => a - b)
    .map((start) => {
      const [owner, backup] = [dice.of(engines), dice.of(engines)];
      return { start, owner, backup: backup === owner ? -1 : backup };
    });
  return {
    id,
    cluster: `pool-${id}`,
    engines,
    segments: engines.length === 0 ? [] : segments,
    retryRatio: dice.share(),
    shedFraction: dice.is(0.1) ? dice.share() : 0,
  };
}

function ask(dice: Dice, vm: Vm): Stream {
  return vm.request(
    {
      ':method': dice.is(0.2) ? 'GET' : 'POST',
      'x-wardrop-model': dice.of(['all', 'all', 'few']),
      ...(dice.is(0.8) && { 'x-session-id': `k${dice.upTo(30)}` }),
      ...(dice.is(0.4) && { 'x-wardrop-new': 'true' }),
    },
    { ended: dice.is(0.2) },
  );
}

/** Ends a request in one of the ways in which requests end. */
function end(dice: Dice, stream: Stream): void {
  if (dice.is(0.75)) {
    stream.respond(dice.of([200, 200, 404, 503]), {
      attempts: dice.upTo(4),
      ...(dice.is(0.3) && { address: `10.0.${dice.upTo(3)}.${dice.upTo(7)}:8000` }),
      ...(dice.is(0.1) && { details: 'no_healthy_upstream' }),
      ...(dice.is(0.4) && { headers: [['content-type', 'text/event-stream']] }),
    });
    if (dice.is(0.6)) stream.responseBody('data: x\n\n', dice.is(0.6));
  }
  if (dice.is(0.85)) stream.end();
  else stream.vanish();
}

/** Endpoints of the fleet, nobody twice, one more than the retries that Envoy may make, and never more than three. */
function expectSound({ endpoints, retries }: Stream, { engines }: SnapshotView): void {
  expect(endpoints).toHaveLength(retries + 1);
  expect(endpoints.length).toBeLessThanOrEqual(3);
  expect(new Set(endpoints).size).toBe(endpoints.length);
  const known = engines.flatMap(({ replicas }) => replicas.map(({ address }) => address));
  for (const endpoint of endpoints) expect(known).toContain(endpoint);
}

it('while engines and replicas come and go under load, endpoint lists are sound, and in the end nothing is in flight', () => {
  for (let seed = 0; seed < 30; seed++) {
    const dice = new Dice(seed);
    const vm = new Host().startVm({ frontendId: 'west', placement: dice.is(0.7) });
    let fleet = anyFleet(dice, 1);
    deliver(vm, fleet);
    const open: Stream[] = [];
    for (let step = 0; step < 400; step++) {
      if (dice.is(0.1)) {
        vm.host.nowMs += dice.of([1, 100, 2_000, 31_000, 70_000]);
        vm.tick();
      }
      if (vm.call && dice.is(0.06)) {
        fleet = anyFleet(dice, fleet.version + 1);
        deliver(vm, fleet);
      }
      const stream = ask(dice, vm);
      if (stream.forwarded) {
        expectSound(stream, fleet);
        open.push(stream);
      }
      while (open.length > 0 && dice.is(0.55)) end(dice, open.splice(dice.upTo(open.length - 1), 1)[0]!);
    }
    for (const stream of open) stream.end();
    sweep(vm);
    const { engines, replicas } = reportOf(vm);
    for (const { planned, diverted, ended } of engines) expect(planned + diverted - ended).toBe(0);
    expect(replicas).toEqual([]);
  }
});
