import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Claim, Leadership, SILENT_MS } from './leadership.js';

const TICK_MS = 200;

/** Servers that hear each other over links that may fail, one way or both. */
class World {
  nowMs = 1;
  readonly down = new Set<string>();
  readonly servers: Leadership[];

  constructor(count: number) {
    this.servers = Array.from({ length: count }, (_, index) => new Leadership(name(index), false, 1));
  }

  start(index: number): void {
    const hasCompany = this.servers.some((_, other) => other !== index && this.hears(index, other));
    this.servers[index] = new Leadership(name(index), hasCompany, this.nowMs);
  }

  hears(to: number, from: number): boolean {
    return !this.down.has(`${to} ${from}`);
  }

  run(ms: number): void {
    for (const untilMs = this.nowMs + ms; this.nowMs < untilMs; this.nowMs += TICK_MS) {
      const claims: Claim[] = this.servers.map(({ claim }) => claim);
      for (const [to, server] of this.servers.entries()) {
        for (const [from, claim] of claims.entries()) {
          if (from !== to && this.hears(to, from)) server.hear(name(from), claim, this.nowMs);
        }
        server.decide(this.nowMs);
      }
    }
  }

  get leaders(): readonly string[] {
    return this.servers.flatMap(({ claim }) => (claim.leads ? [claim.instance] : []));
  }
}

function name(index: number): string {
  return String.fromCharCode(97 + index);
}

describe('who makes the plans', () => {
  it('is at once a server that nobody else answers', () => {
    expect(new Leadership('a', false, 1).decide(1)).toBe(true);
  });

  it('is who did so before, when another one starts', () => {
    const world = new World(2);
    world.down.add('0 1').add('1 0');
    world.run(1_000);
    world.down.clear();
    world.start(0);
    world.run(10_000);
    expect(world.leaders).toEqual(['b']);
    expect(world.servers[0]!.leader).toBe('b');
  });

  it('is the one that has led for longer, of two that hear each other for the first time', () => {
    const world = new World(2);
    world.down.add('0 1').add('1 0');
    world.run(5_000);
    world.start(0);
    world.run(5_000);
    expect(world.leaders).toEqual(['a', 'b']);
    world.down.clear();
    world.run(1_000);
    expect(world.leaders).toEqual(['b']);
  });

  it('is another one when the first has been silent for 3 s, and still is when that one is back', () => {
    const world = new World(2);
    world.run(5_000);
    expect(world.leaders).toEqual(['a']);
    world.down.add('1 0').add('0 1');
    world.run(SILENT_MS - TICK_MS);
    expect(world.servers[1]!.claim.leads).toBe(false);
    world.run(2 * TICK_MS);
    expect(world.servers[1]!.claim.leads).toBe(true);
    world.down.clear();
    world.run(1_000);
    expect(world.leaders).toEqual(['b']);
  });

  it('is exactly one server, on which all agree, once all hear each other, whatever happened before', () => {
    const count = 3;
    const index = fc.nat(count - 1);
    const event = fc.oneof(
      fc.record({ kind: fc.constant('cut' as const), to: index, from: index }),
      fc.record({ kind: fc.constant('heal' as const), to: index, from: index }),
      fc.record({ kind: fc.constant('start' as const), to: index, from: index }),
    );
    fc.assert(
      fc.property(fc.array(fc.tuple(event, fc.nat(5_000)), { maxLength: 12 }), (history) => {
        const world = new World(count);
        for (const [{ kind, to, from }, ms] of history) {
          if (kind === 'cut') world.down.add(`${to} ${from}`);
          else if (kind === 'heal') world.down.delete(`${to} ${from}`);
          else world.start(to);
          world.run(ms);
        }
        world.down.clear();
        world.run(4 * SILENT_MS);
        expect(world.leaders).toHaveLength(1);
        const [leader] = world.leaders;
        for (const { claim, leader: followed } of world.servers) {
          expect(followed).toBe(claim.leads ? undefined : leader);
        }
      }),
    );
  });
});
