import { afterAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../config/load.js';
import type { FleetState } from '../fleet/fleet-state.js';
import { Optimizer } from '../optimizer/index.js';
import { makePlan } from '../plan/make-plan.js';
import { noRelief } from '../plan/protection/relief.js';
import { encodeState } from '../plan/state-file/state-format.js';
import { Signals } from '../signals/signals.js';
import { asFollowed, type FollowedPlan } from './followed-plan.js';
import { Following } from './following.js';
import type { Peers } from './peers.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

function configOf(frontends: readonly string[]) {
  const config = {
    frontends: frontends.map((id) => ({ id, region: id })),
    engines: ['a', 'b'].map((id, at) => ({ id, region: id, models: ['m'], endpoints: [`10.0.0.${at}:80`] })),
    network: { rttMs: Object.fromEntries(frontends.map((id) => [id, { a: 1, b: 2 }])) },
  };
  return loadConfig('/none/fleet.yaml', () => JSON.stringify(config));
}

function stateOf(frontends: readonly string[]) {
  return new Signals(configOf(frontends), [], 0).evaluate(0).state;
}

async function savedPlan(frontends: readonly string[], snapshotVersion = 1) {
  const { profiles, policy } = configOf(frontends);
  const input = { previous: null, state: stateOf(frontends), profiles, policy };
  const { plan } = await makePlan(optimizer, input, () => 0);
  return encodeState({ plan, snapshotVersion, salt: 's' });
}

const live = { engines: [], relief: noRelief };

/** A control server that follows, or leads, as it is told. */
class World {
  leads = false;
  followed: { readonly address: string; readonly state: string; readonly live: typeof live } | undefined;
  state = stateOf(['west']);
  readonly published: FollowedPlan[] = [];
  readonly following = new Following({
    peers: this.#peers() as Peers,
    log: { info: () => undefined },
    state: () => this.state,
    ownRelief: () => noRelief,
    inForce: () => {
      const last = this.published.at(-1);
      return last && { planId: last.plan.id, salt: last.salt };
    },
    onPlan: (plan) => this.published.push(plan),
    onRelief: () => undefined,
  });

  #peers() {
    const world = this;
    return {
      isAlone: false,
      decide: () => world.leads,
      get followed() {
        return world.followed;
      },
    } as unknown;
  }

  /** What is so after a look: whether plans are made here, and whether engines are as another server says. */
  look(nowMs: number): readonly boolean[] {
    this.following.look(nowMs);
    const { isPlanning, isFollowing } = this.following;
    return [isPlanning, isFollowing];
  }
}

describe('whose plans are in force', () => {
  it('are those of the server that leads, each published once', async () => {
    const world = new World();
    expect(world.look(0)).toEqual([false, false]);
    world.followed = { address: 'x', state: await savedPlan(['west']), live };
    expect(world.look(1)).toEqual([false, true]);
    world.followed = { ...world.followed, state: await savedPlan(['west'], 2) };
    expect(world.look(2)).toEqual([false, true]);
    expect(world.published).toMatchObject([{ salt: 's', plan: { sequence: 1 } }]);
    world.leads = true;
    expect(world.look(3)).toEqual([true, false]);
  });

  it('are our own when those of the other have not fitted for 10 s, until they do', async () => {
    const world = new World();
    world.followed = { address: 'x', state: await savedPlan(['west']), live };
    world.look(0);
    world.state = stateOf(['east', 'west']);
    expect(world.look(1_000)).toEqual([false, true]);
    expect(world.following.unfitReason).toMatch(/east/);
    expect(world.look(10_999)).toEqual([false, true]);
    world.look(11_000);
    expect(world.look(11_200)).toEqual([true, false]);
    world.followed = { ...world.followed, state: await savedPlan(['east', 'west']) };
    expect(world.look(12_000)).toEqual([false, true]);
    expect(world.following.unfitReason).toBeNull();
    expect(world.published).toHaveLength(2);
  });

  it('are looked at once for each fleet, as that takes as long as many snapshots', async () => {
    const world = new World();
    let looks = 0;
    const watched = (state: FleetState): FleetState => {
      const { frontends } = state.fleet;
      const fleet = Object.defineProperty({ ...state.fleet }, 'frontends', {
        get: () => {
          looks++;
          return frontends;
        },
      });
      return { ...state, fleet };
    };
    world.state = watched(stateOf(['east', 'west']));
    world.followed = { address: 'x', state: await savedPlan(['west']), live };
    world.look(0);
    const before = looks;
    expect(before).toBeGreaterThan(0);
    world.look(200);
    world.followed = { ...world.followed, state: await savedPlan(['west'], 2) };
    world.look(400);
    expect(world.following.unfitReason).toMatch(/east/);
    expect(looks).toBe(before);
    world.state = { ...watched(stateOf(['west'])), atMs: 600 };
    expect(world.look(600)).toEqual([false, true]);
    const after = looks;
    expect(after).toBeGreaterThan(before);
    world.state = { ...world.state, atMs: 800 };
    world.look(800);
    expect(world.following.unfitReason).toBeNull();
    expect(looks).toBe(after);
  });

  it('are our own, and nothing is said against others, once this server leads', async () => {
    const world = new World();
    world.followed = { address: 'x', state: '{}', live };
    world.look(0);
    expect(world.following.unfitReason).toMatch(/cannot be read/);
    world.leads = true;
    expect(world.look(1)).toEqual([true, false]);
    expect(world.following.unfitReason).toBeNull();
  });
});

it('engines look as they do to the server that leads, but for replicas that it does not know', () => {
  const [own] = stateOf(['west']).engines;
  const replicas = [
    { address: '10.0.0.0:80', ready: true },
    { address: '10.0.0.9:80', ready: true },
  ];
  const there = { ...own!, drain: 0.5, replicas: [{ address: '10.0.0.0:80', ready: false }] };
  expect(asFollowed([{ ...own!, replicas }], [there])).toEqual([
    { ...there, replicas: [{ address: '10.0.0.0:80', ready: false }, replicas[1]] },
  ]);
});
