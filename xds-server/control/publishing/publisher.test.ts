import { setImmediate as turn } from 'node:timers/promises';
import { fromBinary } from '@bufbuild/protobuf';
import { AnySchema, anyUnpack } from '@bufbuild/protobuf/wkt';
import { afterEach, describe, expect, it } from 'vitest';
import { decodeSnapshot } from '../../../wire/snapshot-reader.js';
import { loadConfig } from '../../config/load.js';
import type { Fleet } from '../../fleet/fleet.js';
import { engineStates } from '../../fleet/testing/engine-states.js';
import { ClusterLoadAssignmentSchema } from '../../gen/envoy/config/endpoint/v3/endpoint_pb.js';
import type { Plan } from '../../plan/plan.js';
import { noRelief } from '../../plan/protection/relief.js';
import { SnapshotBoard } from '../../sync/snapshot-board.js';
import type { EnvoyOptions, ResourceSet } from '../../xds/index.js';
import { ENDPOINTS_TYPE } from '../../xds/protocol/type-url.js';
import { type Publication, Publisher } from './publisher.js';

/** Engines `a`, `b`, … each with one replica. */
function fleetOf(...engineIds: string[]): Fleet {
  return fleetWith(['m'], engineIds);
}

/** The same with a pool for each model. */
function fleetWith(models: readonly string[], engineIds: readonly string[]): Fleet {
  const engines = engineIds.map((id) => {
    const port = id.charCodeAt(0);
    return `{id: ${id}, region: r, models: [${models}], profile: p, endpoints: [10.0.0.1:${port}]}`;
  });
  const text = `frontends: [{id: f, region: r}]\nengines: [${engines}]\nprofiles: {p: {requestsPerSecond: 1}}\n`;
  return loadConfig('/none/fleet.yaml', () => text).fleet;
}

function publicationOf(
  fleet: Fleet,
  weights: Readonly<Record<string, number>>,
  down: readonly string[] = [],
): Publication {
  const engines = engineStates(fleet, ({ id }) => !down.includes(id));
  let start = 0;
  const segments = Object.entries(weights).map(([ownerId, weight]) => {
    const segment = { start: Math.floor(start * 2 ** 32), ownerId, backupId: null };
    start += weight;
    return segment;
  });
  const plan: Plan = {
    id: '0123456789abcdef',
    sequence: 1,
    createdAtMs: 0,
    rows: [
      {
        frontendId: 'f',
        poolId: 'm',
        demandRps: 1,
        weights: Object.entries(weights).map(([engineId, weight]) => ({ engineId, weight })),
        segments,
        retryRatio: 0,
        shed: [],
      },
    ],
    engines: [],
    objectiveSeconds: 0,
  };
  return { plan, fleet, engines };
}

const NODE = { id: 'n', cluster: 'f', region: 'r', metadata: {}, userAgent: '', userAgentVersion: '' };

/** Records what Envoy and the filter can see, in the order of the changes. */
class World {
  nowMs = 1_000_000;
  envoy: EnvoyOptions = { filter: { frontendId: 'f' } };
  readonly events: string[] = [];
  /** Pools that Envoy has. */
  pools: readonly string[] = [];
  retained: readonly string[] = [];
  readonly board = new SnapshotBoard(() => this.nowMs);
  accept: (settled: boolean) => void = () => undefined;
  steered = 1;
  readonly namedElsewhere = new Set<string>();
  readonly faults: unknown[] = [];
  readonly publisher = new Publisher({
    steered: () => this.steered,
    relief: () => noRelief,
    xds: {
      setResources: (_frontendId, set) => {
        this.events.push(`envoy: ${endpointsOf(set)}`);
        this.pools = [...set.viewOf(NODE).get(ENDPOINTS_TYPE)!.resources.keys()];
      },
      retain: (ids) => {
        this.retained = [...ids];
      },
      settled: () =>
        new Promise((resolve) => {
          this.accept = resolve;
        }),
    },
    board: this.board,
    salt: () => 'salt',
    wasmModule: new Uint8Array(),
    envoy: () => this.envoy,
    edsIntervalMs: () => 5_000,
    isNamedElsewhere: (poolId) => this.namedElsewhere.has(poolId),
    onFault: (error) => this.faults.push(error),
    now: () => this.nowMs,
  });

  /** Notes the filter's engines when its snapshot moved. */
  look(): void {
    const snapshot = this.board.current('f')!;
    const { engines } = decodeSnapshot(snapshot.bytes);
    const text = engines.map(({ id, replicas }) => (replicas[0]!.ready ? id : `(${id})`)).join(' ');
    this.events.push(`filter: ${text}`);
  }

  take(): void {
    this.board.noteHolder('f', 'n', this.board.current('f')!.version);
  }
}

/** Engines in the order of Envoy's list, unhealthy ones in brackets, weights in percent. */
function endpointsOf(set: ResourceSet): string {
  const [resource] = set.viewOf(NODE).get(ENDPOINTS_TYPE)!.resources.values();
  const any = fromBinary(AnySchema, resource!.any);
  const assignment = anyUnpack(any, ClusterLoadAssignmentSchema)!;
  return assignment.endpoints
    .map(({ locality, lbEndpoints, priority }) => {
      const { healthStatus, loadBalancingWeight } = lbEndpoints[0]!;
      const percent = priority === 0 ? Math.round(Number(loadBalancingWeight) / 1e7) : 0;
      const text = `${locality!.subZone}=${percent}`;
      return healthStatus === 1 ? text : `(${text})`;
    })
    .join(' ');
}

let world: World;
afterEach(() => world.publisher.stop());

describe('Publisher', () => {
  it('names an endpoint to filters only after Envoy knows it, and forgets it only after filters did', async () => {
    world = new World();
    world.publisher.publish(publicationOf(fleetOf('a', 'b'), { a: 0.5, b: 0.5 }));
    world.look();
    world.take();
    world.publisher.publish(publicationOf(fleetOf('a', 'c'), { a: 0.5, c: 0.5 }));
    world.look();
    world.accept(true);
    await turn();
    world.look();
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(world.events).toEqual([
      'envoy: a=50 b=50',
      'filter: a b',
      'envoy: a=50 c=50 (b=0)',
      'filter: a b',
      'filter: a c',
    ]);
    world.take();
    await world.publisher.idle();
    expect(world.events.at(-1)).toBe('envoy: a=50 c=50');
  });

  it('tells filters of readiness at once, and Envoy right after', () => {
    world = new World();
    const fleet = fleetOf('a', 'b');
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }));
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }, ['b']));
    world.look();
    expect(world.events).toEqual(['envoy: a=50 b=50', 'envoy: a=50 (b=50)', 'filter: a (b)']);
  });

  it('pushes other options of Envoy and its filter at once', () => {
    world = new World();
    const fleet = fleetOf('a', 'b');
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }));
    world.envoy = { ...world.envoy, steering: 'maglev' };
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }));
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }));
    expect(world.events).toEqual(['envoy: a=50 b=50', 'envoy: a=50 b=50']);
  });

  it('pushes weights to Envoy when they differ enough, and not too often', async () => {
    world = new World();
    const fleet = fleetOf('a', 'b');
    const publish = (a: number) => world.publisher.publish(publicationOf(fleet, { a, b: 1 - a }));
    publish(0.5);
    await turn();
    world.nowMs += 10_000;
    publish(0.51);
    publish(0.6);
    publish(0.7);
    publish(0.75);
    expect(world.events).toEqual(['envoy: a=50 b=50', 'envoy: a=60 b=40']);
    await turn();
    world.nowMs += 4_990;
    publish(0.8);
    expect(world.events).toHaveLength(2);
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(world.events.slice(2)).toEqual(['envoy: a=80 b=20']);
  });

  it('issues a snapshot for every plan, however small the change', () => {
    world = new World();
    const fleet = fleetOf('a', 'b');
    world.publisher.publish(publicationOf(fleet, { a: 0.5, b: 0.5 }));
    const { version } = world.board.current('f')!;
    world.publisher.publish(publicationOf(fleet, { a: 0.5001, b: 0.4999 }));
    expect(world.board.current('f')!.version).toBeGreaterThan(version);
  });

  it('of frontends that are gone nothing is kept, neither snapshots nor what Envoys see', () => {
    world = new World();
    const fleet = fleetOf('a');
    world.publisher.publish(publicationOf(fleet, { a: 1 }));
    expect([world.retained, world.board.hasAny]).toEqual([['f'], true]);
    world.publisher.publish(publicationOf({ ...fleet, frontends: [] }, { a: 1 }));
    expect([world.retained, world.board.hasAny]).toEqual([[], false]);
  });

  it('leaves Envoys the clusters of pools that are gone while another control server names them, however often the fleet changes', async () => {
    world = new World();
    const { publisher } = world;
    const change = async (...models: string[]) => {
      publisher.publish(publicationOf(fleetWith(models, ['a']), { a: 1 }));
      world.accept(true);
      await turn();
      await publisher.idle();
      return world.pools;
    };
    await change('m', 'n');
    world.namedElsewhere.add('n');
    expect(await change('m', 'o')).toEqual(['m', 'n', 'o']);
    expect(await change('m')).toEqual(['m', 'n']);
    expect(publisher.pools).toEqual({ given: ['m', 'n'], named: ['m'] });
    publisher.letGo();
    expect(world.pools).toEqual(['m', 'n']);
    world.namedElsewhere.clear();
    publisher.letGo();
    await turn();
    expect(world.pools).toEqual(['m']);
    expect(publisher.pools).toEqual({ given: ['m'], named: ['m'] });
  });

  it('begins a change of the fleet anew that failed on its way to Envoys', async () => {
    world = new World();
    const { publisher } = world;
    const change = async (...engineIds: string[]) => {
      publisher.publish(publicationOf(fleetOf(...engineIds), { [engineIds[0]!]: 1 }));
      world.accept(true);
      await turn();
      await publisher.idle();
      return world.events.at(-1);
    };
    await change('a');
    world.envoy = undefined as never;
    await change('b');
    expect(world.faults).toMatchObject([{ name: 'TypeError' }]);
    world.look();
    expect(world.events.at(-1)).toBe('filter: a');
    world.envoy = { filter: { frontendId: 'f' } };
    expect(await change('b')).toBe('envoy: b=100');
    world.look();
    expect(world.events.at(-1)).toBe('filter: b');
    expect(world.faults).toHaveLength(1);
  });

  it('goes on when Envoys do not answer: a change of the fleet takes a bounded time', async () => {
    world = new World();
    world.publisher.publish(publicationOf(fleetOf('a'), { a: 1 }));
    world.board.noteHolder('f', 'n', world.board.current('f')!.version);
    world.publisher.publish(publicationOf(fleetOf('b'), { b: 1 }));
    world.accept(false);
    await turn();
    world.look();
    expect(world.events.at(-1)).toBe('filter: b');
    world.nowMs += 6_000;
    await world.publisher.idle();
    expect(world.events.at(-1)).toBe('envoy: b=100');
  });
});
