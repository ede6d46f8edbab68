import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { noFault } from '../../../test/no-fault.js';
import { decodeSnapshot } from '../../../wire/snapshot-reader.js';
import { loadConfig } from '../../config/load.js';
import type { Fleet } from '../../fleet/fleet.js';
import { engineStates } from '../../fleet/testing/engine-states.js';
import { HASH_SPACE, type Plan } from '../../plan/plan.js';
import { noRelief } from '../../plan/protection/relief.js';
import { SnapshotBoard } from '../../sync/snapshot-board.js';
import { type Publication, Publisher } from './publisher.js';

const ids = ['f', 'g', 'h'];

function fleetOf(...engineIds: string[]): Fleet {
  const engines = engineIds.map((id) => ({
    id,
    region: 'r',
    models: ['m'],
    profile: 'p',
    endpoints: [`10.0.0.1:${id.charCodeAt(0)}`],
  }));
  const frontends = ids.map((id) => ({ id, region: 'r' }));
  const text = JSON.stringify({ frontends, engines, profiles: { p: { requestsPerSecond: 1 } } });
  return loadConfig('/none/fleet.yaml', () => text).fleet;
}

/** `weight` is that of engine `a`; the other one has the rest. */
function publicationOf(fleet: Fleet, weight = 0.5): Publication {
  const [a, b] = fleet.engines.map(({ id }) => id) as [string, string];
  const plan: Plan = {
    id: '0123456789abcdef',
    sequence: 1,
    createdAtMs: 0,
    rows: ids.map((frontendId) => ({
      frontendId,
      poolId: 'm',
      demandRps: 1,
      weights: [
        { engineId: a, weight },
        { engineId: b, weight: 1 - weight },
      ],
      segments: [
        { start: 0, ownerId: a, backupId: null },
        { start: weight * HASH_SPACE, ownerId: b, backupId: null },
      ],
      retryRatio: 0,
      shed: [],
    })),
    engines: [],
    objectiveSeconds: 0,
  };
  return { plan, fleet, engines: engineStates(fleet) };
}

/** Each push to Envoys takes longer than a slice. */
class SlowWorld {
  nowMs = 1_000_000;
  takesMs = 100;
  steered = 1;
  readonly pushes: string[] = [];
  readonly board = new SnapshotBoard(() => this.nowMs);
  accept: () => void = () => undefined;
  settled = (): Promise<boolean> => Promise.resolve(true);
  readonly publisher = new Publisher({
    steered: () => this.steered,
    relief: () => noRelief,
    xds: {
      setResources: (frontendId) => {
        this.nowMs += this.takesMs;
        this.pushes.push(frontendId);
      },
      retain: () => undefined,
      settled: () => this.settled(),
    },
    board: this.board,
    salt: () => 'salt',
    wasmModule: new Uint8Array(),
    envoy: (frontendId) => ({ filter: { frontendId } }),
    edsIntervalMs: () => 0,
    isNamedElsewhere: () => false,
    onFault: noFault,
    now: () => this.nowMs,
  });

  /** Where the second engine's part begins in each snapshot, in percent of the hash space; nothing where there is none. */
  weights(): (number | undefined)[] {
    return this.#views().map((view) => view && (100 * view.pools[0]!.segments[1]!.start) / HASH_SPACE);
  }

  engines(): (string | undefined)[] {
    return this.#views().map((view) => view?.engines.map(({ id }) => id).join(' '));
  }

  shares(): (number | undefined)[] {
    return this.#views().map((view) => view?.steered ?? 1);
  }

  #views() {
    return ids.map((id) => {
      const snapshot = this.board.current(id);
      return snapshot && decodeSnapshot(snapshot.bytes);
    });
  }
}

let world: SlowWorld;
afterEach(() => world.publisher.stop());

describe('a publication to many frontends', () => {
  it('lets the event loop go on between them, in the order of the fleet', async () => {
    world = new SlowWorld();
    world.publisher.publish(publicationOf(fleetOf('a', 'b')));
    expect(world.weights()).toEqual([50, undefined, undefined]);
    await nextTurn();
    expect(world.weights()).toEqual([50, 50, undefined]);
    await world.publisher.idle();
    expect(world.weights()).toEqual([50, 50, 50]);
    expect(world.pushes).toEqual(['f', 'g', 'h']);
  });

  it('gives way to a newer one: no frontend gets the older one after it, or twice', async () => {
    world = new SlowWorld();
    const fleet = fleetOf('a', 'b');
    world.publisher.publish(publicationOf(fleet, 0.25));
    world.publisher.publish(publicationOf(fleet, 0.75));
    await world.publisher.idle();
    expect(world.weights()).toEqual([75, 75, 75]);
    expect(world.pushes).toEqual(['f', 'g', 'h', 'f']);
  });

  it('does not hold up the kill switch, not even by a fleet that is to be announced first', async () => {
    world = new SlowWorld();
    const settled: (() => void)[] = [];
    world.publisher.publish(publicationOf(fleetOf('a', 'b')));
    await world.publisher.idle();
    world.settled = () => new Promise((resolve) => settled.push(() => resolve(true)));
    world.steered = 0;
    world.takesMs = 30;
    world.publisher.publish(publicationOf(fleetOf('a', 'c')));
    world.publisher.refresh();
    while (settled.length < ids.length) await nextTurn();
    expect(world.engines()).toEqual(['a b', 'a b', 'a b']);
    expect(world.shares()).toEqual([1, 0, 0]);
    for (const resolve of settled) resolve();
    await nextTurn();
    await world.publisher.idle();
    expect(world.engines()).toEqual(['a c', 'a c', 'a c']);
    expect(world.shares()).toEqual([0, 0, 0]);
  });

  it('takes departed endpoints from Envoy only when filters have the snapshot without them, though that waited', async () => {
    world = new SlowWorld();
    world.publisher.publish(publicationOf(fleetOf('a', 'b')));
    await world.publisher.idle();
    const take = () => world.board.noteHolder('h', 'n', world.board.current('h')!.version);
    take();
    world.pushes.length = 0;
    world.publisher.publish(publicationOf(fleetOf('a', 'c')));
    // The others, whose filters do not call, are through.
    while (world.pushes.length < 5) await sleep(10);
    await sleep(100);
    expect(world.pushes.filter((id) => id === 'h')).toEqual(['h']);
    expect(world.engines()[2]).toBe('a c');
    take();
    await world.publisher.idle();
    expect(world.pushes.filter((id) => id === 'h')).toEqual(['h', 'h']);
  });
});
