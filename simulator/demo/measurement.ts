import { decisionOf } from '../../wire/decision.js';
import type { ChatResult } from '../load/chat-request.js';
import type { Turn } from '../load/conversations.js';
import { meanOf, quantile } from '../load/statistics.js';
import { engines, frontends, SLO } from './scenario.js';

/** Shares of a frontend's requests by engine id. */
export type Weights = ReadonlyMap<string, number>;

/** Flow from one frontend to one engine, in requests per second. */
export interface Flow {
  readonly frontend: string;
  readonly engine: string;
  /** The weights in force when each request was sent, added up. */
  readonly plannedRps: number;
  readonly measuredRps: number;
  /** How much more was measured than planned, of the requests that no engine was too busy for. */
  readonly differenceRps: number;
  /** Standard error of that: whole conversations go one way or the other. */
  readonly standardErrorRps: number;
}

export interface EngineLoad {
  readonly engine: string;
  readonly rps: number;
  readonly capacityRps: number;
}

export interface Latencies {
  readonly meanE2eMs: number;
  readonly p50E2eMs: number;
  readonly p90E2eMs: number;
  readonly p99E2eMs: number;
  /** Of streamed answers. */
  readonly p50TtftMs: number;
  readonly p90TtftMs: number;
}

export function latencies(e2eMs: readonly number[], ttftMs: readonly number[]): Latencies {
  return {
    meanE2eMs: meanOf(e2eMs),
    p50E2eMs: quantile(e2eMs, 0.5),
    p90E2eMs: quantile(e2eMs, 0.9),
    p99E2eMs: quantile(e2eMs, 0.99),
    p50TtftMs: quantile(ttftMs, 0.5),
    p90TtftMs: quantile(ttftMs, 0.9),
  };
}

/** What one policy did to the requests that were due in the measured time. */
export interface PolicyResult extends Latencies {
  readonly requests: number;
  readonly sloShare: number;
  readonly cacheHitShare: number;
  readonly errors: number;
  readonly timeouts: number;
  readonly shed: number;
  /** Requests that went elsewhere than planned, as the engine had too much in flight. */
  readonly overflowed: number;
  readonly flows: readonly Flow[];
  readonly loads: readonly EngineLoad[];
  /** How often each error was met. */
  readonly errorDetails: ReadonlyMap<string, number>;
}

interface Sample {
  readonly frontendId: string;
  readonly turn: Turn;
  readonly weights: Weights;
  readonly result: ChatResult;
}

/** Collects what becomes of requests and adds it up. */
export class Measurement {
  readonly #seconds: number;
  readonly #samples: Sample[] = [];

  constructor(seconds: number) {
    this.#seconds = seconds;
  }

  /** `weights` were in force when the request was sent. */
  add(frontendId: string, turn: Turn, weights: Weights, result: ChatResult): void {
    this.#samples.push({ frontendId, turn, weights, result });
  }

  result(): PolicyResult {
    const results = this.#samples.map(({ result }) => result);
    const answered = results.filter(({ end }) => end === 'answered');
    const waited = this.#samples.filter(({ result }) => hasWaited(result));
    const e2eMs = waited.map(({ result }) => result.elapsedMs);
    const ttftMs = waited
      .filter(({ turn }) => turn.streamed)
      .map(({ result }) => result.firstTokenMs ?? result.elapsedMs);
    const count = (end: ChatResult['end']) => results.filter((result) => result.end === end).length;
    const total = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
    return {
      requests: results.length,
      ...latencies(e2eMs, ttftMs),
      sloShare: this.#samples.filter(meetsSlo).length / results.length,
      cacheHitShare:
        total(answered.map(({ cachedTokens }) => cachedTokens)) /
        total(answered.map(({ promptTokens }) => promptTokens)),
      errors: count('error'),
      timeouts: count('timeout'),
      shed: count('shed'),
      overflowed: this.#samples.filter(isOverflowed).length,
      flows: this.#flows(),
      loads: this.#loads(),
      errorDetails: this.#errorDetails(),
    };
  }

  #flows(): Flow[] {
    return frontends.flatMap(({ id }) => {
      const samples = this.#samples.filter(
        ({ frontendId, result }) => frontendId === id && result.end !== 'shed',
      );
      return engines.map((engine) => this.#flow(id, engine.id, samples));
    });
  }

  #flow(frontend: string, engine: string, samples: readonly Sample[]): Flow {
    const conversations = new Map<string, { turns: number; planned: number }>();
    let planned = 0;
    let measured = 0;
    let difference = 0;
    for (const sample of samples) {
      const expected = sample.weights.get(engine) ?? 0;
      const served = shareServedBy(engine, sample);
      planned += expected;
      measured += served;
      if (isOverflowed(sample)) continue;
      difference += served - expected;
      const { conversationId } = sample.turn;
      const conversation = conversations.get(conversationId) ?? { turns: 0, planned: 0 };
      conversation.turns++;
      conversation.planned += expected;
      conversations.set(conversationId, conversation);
    }
    // All turns of a conversation go here with the probability of one: the variance of a coin, times the turns squared.
    const variance = [...conversations.values()].reduce(
      (sum, one) => sum + one.planned * (one.turns - one.planned),
      0,
    );
    return {
      frontend,
      engine,
      plannedRps: planned / this.#seconds,
      measuredRps: measured / this.#seconds,
      differenceRps: difference / this.#seconds,
      standardErrorRps: Math.sqrt(Math.max(0, variance)) / this.#seconds,
    };
  }

  #loads(): EngineLoad[] {
    return engines.map(({ id, requestsPerSecond }) => {
      const sent = this.#samples.filter(({ result }) => result.end !== 'shed');
      const requests = sent.reduce((sum, sample) => sum + shareServedBy(id, sample), 0);
      return { engine: id, rps: requests / this.#seconds, capacityRps: requestsPerSecond };
    });
  }

  #errorDetails(): Map<string, number> {
    const details = new Map<string, number>();
    for (const { result } of this.#samples) {
      if (result.end !== 'error') continue;
      const detail = result.detail?.slice(0, 160) ?? '';
      details.set(detail, (details.get(detail) ?? 0) + 1);
    }
    return details;
  }
}

/**
 * Whether its time counts as a latency. Whoever left has waited at least so long: leaving them out would flatter a
 * policy that makes clients leave.
 */
function hasWaited({ end }: ChatResult): boolean {
  return end === 'answered' || end === 'timeout';
}

/** 1 or 0 by the engine that answered; who left before anybody answered counts as planned. */
function shareServedBy(engine: string, { result, weights }: Sample): number {
  const served = result.headers['x-engine'];
  if (served === undefined) return weights.get(engine) ?? 0;
  return served === engine ? 1 : 0;
}

function isOverflowed({ result }: Sample): boolean {
  return decisionOf(result.headers).reason === 'overflow';
}

function meetsSlo({ result }: Sample): boolean {
  if (result.end !== 'answered' || result.elapsedMs > SLO.completeMs) return false;
  return result.firstTokenMs === undefined || result.firstTokenMs <= SLO.firstTokenMs;
}

export function maxUtilization({ loads }: PolicyResult): number {
  return Math.max(...loads.map(({ rps, capacityRps }) => rps / capacityRps));
}

/** Flows that differ from the plan by more than chance explains: three standard errors. */
export function unexplainedFlows({ flows }: PolicyResult): Flow[] {
  return flows.filter(
    ({ differenceRps, standardErrorRps }) => Math.abs(differenceRps) > 3 * standardErrorRps + 1e-9,
  );
}
