import { describe, expect, it } from 'vitest';
import { Random } from '../../../simulator/random.js';
import type { Engine } from '../../fleet/fleet.js';
import { StuckReplicas } from './stuck-replicas.js';

interface Request {
  readonly atMs: number;
  readonly replica: number;
  /** Infinity: it never ends. */
  readonly endMs: number;
}

/** Requests of a Poisson process at one replica. */
interface Flow {
  readonly replica: number;
  readonly perSecond: number;
  readonly fromMs?: number;
  readonly untilMs?: number;
  readonly takesMs: (random: Random) => number;
}

const LIFE_MS = 600_000;
const LOOK_MS = 250;

const about = (ms: number) => (random: Random) => ms * Math.exp(0.5 * random.normal());
const exactly = (ms: number) => () => ms;

function flow(
  { replica, perSecond, fromMs = 0, untilMs = LIFE_MS, takesMs }: Flow,
  random: Random,
): Request[] {
  const requests: Request[] = [];
  for (let atMs = fromMs + random.exponential(1_000 / perSecond); atMs < untilMs; ) {
    requests.push({ atMs, replica, endMs: atMs + takesMs(random) });
    atMs += random.exponential(1_000 / perSecond);
  }
  return requests;
}

/** A job that sends so many requests within some time, and the next so many when all of them have ended. */
function waves(replica: number, count: number, withinMs: number, takesMs: number): Request[] {
  const requests: Request[] = [];
  for (let fromMs = 5_000; fromMs < LIFE_MS; fromMs += withinMs + takesMs + 2_000) {
    for (let i = 0; i < count; i++) {
      const atMs = fromMs + (i * withinMs) / count;
      requests.push({ atMs, replica, endMs: atMs + takesMs });
    }
  }
  return requests;
}

/** A client that always has so many requests under way. */
function closed(
  replica: number,
  count: number,
  fromMs: number,
  takesMs: (random: Random) => number,
  random: Random,
) {
  const requests: Request[] = [];
  for (let client = 0; client < count; client++) {
    for (let atMs = fromMs; atMs < LIFE_MS; ) {
      const endMs = atMs + takesMs(random);
      requests.push({ atMs, replica, endMs });
      atMs = endMs;
    }
  }
  return requests;
}

/** Who is ever found stuck, when, and with how many requests under way. */
function found(replicas: number, requests: readonly Request[]) {
  const endpoints = Array.from({ length: replicas }, (_, at) => `10.0.0.${at}:80`);
  const engine = { id: 'e', endpoints } as unknown as Engine;
  const watch = new StuckReplicas();
  const slots = Array.from({ length: LIFE_MS / LOOK_MS + 1 }, () => ({
    sent: new Array<number>(replicas).fill(0),
    ended: new Array<number>(replicas).fill(0),
  }));
  for (const { atMs, replica, endMs } of requests) {
    slots[Math.ceil(atMs / LOOK_MS)]!.sent[replica]!++;
    const slot = slots[Math.ceil(endMs / LOOK_MS)];
    if (slot !== undefined) slot.ended[replica]!++;
  }
  const inFlight = new Map(endpoints.map((address) => [address, 0]));
  const first = new Map<number, { readonly atMs: number; readonly inFlight: number }>();
  for (const [at, { sent, ended }] of slots.entries()) {
    const atMs = at * LOOK_MS;
    for (const [replica, address] of endpoints.entries()) {
      inFlight.set(address, inFlight.get(address)! + sent[replica]! - ended[replica]!);
      watch.addReplica(address, ended[replica]!, atMs - LOOK_MS, atMs);
    }
    const all = ended.reduce((sum, count) => sum + count, 0);
    watch.addEngine('e', { ended: all, failures: 0, noResponse: 0, wholeCount: all });
    for (const [address, seen] of watch.evaluate([engine], () => true, inFlight, atMs)) {
      const replica = endpoints.indexOf(address);
      if (!first.has(replica)) first.set(replica, { atMs, inFlight: seen.inFlight });
    }
  }
  return first;
}

const random = new Random(1, 'traffic');
const each = (replicas: number, of: (replica: number) => readonly Request[]) =>
  Array.from({ length: replicas }, (_, replica) => of(replica)).flat();
const chats = (replica: number, perSecond: number, more: Partial<Flow> = {}) =>
  flow({ replica, perSecond, takesMs: about(1_000), ...more }, random);
const longs = (replica: number, perSecond: number, more: Partial<Flow> = {}) =>
  flow({ replica, perSecond, takesMs: about(60_000), ...more }, random);

describe('nobody who serves well is found stuck', () => {
  const healthy: Readonly<Record<string, () => readonly [replicas: number, requests: readonly Request[]]>> = {
    'short answers everywhere': () => [4, each(4, (replica) => chats(replica, 5))],
    'long answers everywhere': () => [4, each(4, (replica) => longs(replica, 0.3))],
    'few requests': () => [8, each(8, (replica) => longs(replica, 0.1))],
    'answers of all lengths': () => [
      4,
      each(4, (replica) =>
        flow({ replica, perSecond: 4, takesMs: (by) => 300 * Math.exp(2 * by.normal()) }, random),
      ),
    ],
    'long answers at one, short ones elsewhere': () => [
      4,
      each(4, (replica) => (replica === 0 ? longs(0, 0.3) : chats(replica, 10))),
    ],
    'a hot conversation of short answers that ends, beside long ones everywhere': () => [
      4,
      each(4, (replica) => [
        ...longs(replica, replica === 0 ? 0.25 : 0.15),
        ...Array.from({ length: replica === 0 ? 5 : 1 }, (_, time) => {
          const [fromMs, untilMs] = replica === 0 ? [time * 120_000, time * 120_000 + 60_000] : [0, LIFE_MS];
          return chats(replica, 20, { takesMs: about(200), fromMs, untilMs });
        }).flat(),
      ]),
    ],
    'a job of long answers that keeps short ones away from where it is': () => [
      40,
      each(40, (replica) =>
        replica === 0
          ? [...chats(0, 3, { untilMs: 120_000 }), ...closed(0, 40, 120_000, about(60_000), random)]
          : chats(replica, 3),
      ),
    ],
    'a job of many at a time that all take as long': () => [
      4,
      each(4, (replica) => (replica === 0 ? waves(0, 64, 4_000, 25_000) : chats(replica, 10))),
    ],
    'one replica alone': () => [1, longs(0, 1)],
  };
  it.each(Object.entries(healthy))('%s', (_, traffic) => {
    for (let run = 0; run < 3; run++) expect([...found(...traffic())]).toEqual([]);
  });
});

describe('one that hangs after five minutes is found, before it has many more requests', () => {
  const hangs = (requests: readonly Request[]) =>
    requests.map((request) =>
      request.replica === 0 && request.endMs > 300_000
        ? { ...request, endMs: Number.POSITIVE_INFINITY }
        : request,
    );
  it.each([
    { replicas: 2, perSecond: 10, takesMs: about(1_000), usual: 10 },
    { replicas: 30, perSecond: 3, takesMs: about(3_000), usual: 9 },
    { replicas: 8, perSecond: 1, takesMs: about(20_000), usual: 20 },
    { replicas: 4, perSecond: 10, takesMs: exactly(1_000), usual: 10 },
  ])('among $replicas, with $perSecond requests a second', ({ replicas, perSecond, takesMs, usual }) => {
    const requests = each(replicas, (replica) => flow({ replica, perSecond, takesMs }, random));
    const stuck = found(replicas, hangs(requests));
    expect([...stuck.keys()]).toEqual([0]);
    expect(stuck.get(0)!.inFlight).toBeLessThan(3 * usual + 40);
  });
});
