import {
  type ConversationShape,
  conversationTurns,
  exampleConversations,
  fromLater,
  longestLifeSeconds,
  type Turn,
} from '../load/conversations.js';
import { Random } from '../random.js';

/**
 * The world of the demo: three regions, each with clients, a frontend and an engine. The middle one asks for more than
 * its engine can give; together the engines have room for everybody.
 */
export interface DemoFrontend {
  readonly id: string;
  readonly requestsPerSecond: number;
  /** Its Envoy connects from here; engines tell their peers, and so the network delay, by it. */
  readonly sourceAddress: string;
  readonly nearestEngineId: string;
}

export interface DemoEngine {
  readonly id: string;
  readonly region: string;
  /** A kind of simulated engine, and the id of its profile. */
  readonly kind: string;
  /** What it answers of the demo's requests when it is never idle. */
  readonly requestsPerSecond: number;
}

/**
 * All rates and all engines' speeds are multiplied by this, and pauses of clients divided. Where two cores cannot carry
 * 250 requests per second, a smaller factor keeps the picture: set WARDROP_DEMO_SCALE.
 */
export const SCALE = Number(process.env.WARDROP_DEMO_SCALE ?? 1);

export const MODEL = 'demo-8b';

export const frontends: readonly DemoFrontend[] = [
  { id: 'west', requestsPerSecond: 90 * SCALE, sourceAddress: '127.0.0.11', nearestEngineId: 'a' },
  { id: 'middle', requestsPerSecond: 120 * SCALE, sourceAddress: '127.0.0.12', nearestEngineId: 'b' },
  { id: 'east', requestsPerSecond: 40 * SCALE, sourceAddress: '127.0.0.13', nearestEngineId: 'c' },
];

export const engines: readonly DemoEngine[] = [
  { id: 'a', region: 'west', kind: 'sim-100', requestsPerSecond: 100 * SCALE },
  { id: 'b', region: 'middle', kind: 'sim-100', requestsPerSecond: 100 * SCALE },
  { id: 'c', region: 'east', kind: 'sim-80', requestsPerSecond: 80 * SCALE },
];

/** Round trips in milliseconds from frontends to engines. */
export const rttMs: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  west: { a: 4, b: 32, c: 90 },
  middle: { a: 30, b: 4, c: 60 },
  east: { a: 88, b: 62, c: 4 },
};

const { turnGapSeconds } = exampleConversations;

export const conversations: ConversationShape = {
  ...exampleConversations,
  turnGapSeconds: { min: turnGapSeconds.min / SCALE, max: turnGapSeconds.max / SCALE },
};

/** Until then some conversations lack turns that were sent before the beginning, and caches fill. */
export const WARMUP_SECONDS = Math.ceil(longestLifeSeconds(conversations));

/** All policies get the same requests. */
const LOAD_SEED = 1;

/** What the clients of a frontend send, at its whole rate from the beginning. The same name gives the same requests. */
export function* clientTurns(
  { id, requestsPerSecond }: DemoFrontend,
  name: string,
  seconds: number,
): Generator<Turn> {
  const from = `${name}-${id}`;
  const turns = conversationTurns(conversations, requestsPerSecond, new Random(LOAD_SEED, from), from);
  for (const turn of fromLater(turns, longestLifeSeconds(conversations))) {
    if (turn.atSeconds >= seconds) return;
    yield turn;
  }
}

/** A client gives up when the answer is not complete by then. */
export const CLIENT_TIMEOUT_MS = 10_000 / SCALE;

/** A request is served well when its answer is complete in time and, if streamed, has begun in time. */
export const SLO = { firstTokenMs: 500 / SCALE, completeMs: 2_000 / SCALE };

/** Longest event-loop delay, at the 99th percentile of any process of ours, that still allows to trust the times. */
export const MAX_LAG_MS = 20;

/** The weight that the demo explains at its end: of what the engine in the middle cannot take. */
export const EXPLAINED = { frontend: 'middle', engine: 'c' };

export interface Span {
  readonly warmupSeconds: number;
  readonly seconds: number;
}
