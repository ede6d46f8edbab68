import { describe, expect, it } from 'vitest';
import type { ChatResult } from '../load/chat-request.js';
import type { Turn } from '../load/conversations.js';
import { Random } from '../random.js';
import { Measurement, maxUtilization, unexplainedFlows, type Weights } from './measurement.js';

const SECONDS = 10;

function turn(conversationId = 'c', streamed = false): Turn {
  return { conversationId, index: 0, atSeconds: 0, messageTokens: 1, outputTokens: 1, streamed, last: true };
}

function result(end: ChatResult['end'], elapsedMs: number, change: Partial<ChatResult> = {}): ChatResult {
  return {
    end,
    status: 200,
    firstTokenMs: undefined,
    elapsedMs,
    content: '',
    promptTokens: 100,
    cachedTokens: 60,
    headers: { 'x-engine': 'a' },
    ...change,
  };
}

const onlyA: Weights = new Map([['a', 1]]);

describe('Measurement', () => {
  it('counts time-outs among the latencies with the time they waited, errors and refusals not', () => {
    const measurement = new Measurement(SECONDS);
    const add = (streamed: boolean, ended: ChatResult) =>
      measurement.add('west', turn('c', streamed), onlyA, ended);
    add(true, result('answered', 300, { firstTokenMs: 100 }));
    add(false, result('answered', 500));
    add(true, result('timeout', 10_000));
    add(true, result('error', 1, { detail: 'broken' }));
    add(true, result('shed', 1));
    expect(measurement.result()).toMatchObject({
      requests: 5,
      meanE2eMs: 3600,
      p50E2eMs: 500,
      p50TtftMs: 100,
      p90TtftMs: 10_000,
      errors: 1,
      timeouts: 1,
      shed: 1,
      cacheHitShare: 0.6,
      errorDetails: new Map([['broken', 1]]),
    });
  });

  it('takes a request as served well only if complete in time, and begun in time if streamed', () => {
    const share = (ended: ChatResult) => {
      const measurement = new Measurement(SECONDS);
      measurement.add('west', turn(), onlyA, ended);
      return measurement.result().sloShare;
    };
    expect(share(result('answered', 2000, { firstTokenMs: 500 }))).toBe(1);
    expect(share(result('answered', 2001))).toBe(0);
    expect(share(result('answered', 2000, { firstTokenMs: 501 }))).toBe(0);
    expect(share(result('error', 10))).toBe(0);
    expect(share(result('shed', 10))).toBe(0);
  });

  it('counts flows and loads by the engine that served, refusals by none, and silence as planned', () => {
    const measurement = new Measurement(SECONDS);
    const half: Weights = new Map([
      ['a', 0.5],
      ['b', 0.5],
    ]);
    measurement.add('west', turn('1'), half, result('answered', 1, { headers: { 'x-engine': 'b' } }));
    measurement.add('west', turn('2'), half, result('answered', 1, { headers: { 'x-engine': 'b' } }));
    measurement.add('west', turn('3'), half, result('timeout', 1, { headers: {} }));
    measurement.add('west', turn('4'), half, result('shed', 1, { headers: {} }));
    const { flows, loads } = measurement.result();
    const flow = (engine: string) => flows.find((it) => it.frontend === 'west' && it.engine === engine);
    expect(flow('a')).toMatchObject({ plannedRps: 0.15, measuredRps: 0.05 });
    expect(flow('b')).toMatchObject({ plannedRps: 0.15, measuredRps: 0.25 });
    expect(loads.map(({ rps }) => rps)).toEqual([0.05, 0.25, 0]);
    expect(maxUtilization(measurement.result())).toBeCloseTo(0.0025);
  });

  it('does not hold against the plan what went elsewhere because an engine was busy', () => {
    const measurement = new Measurement(SECONDS);
    const headers = { 'x-engine': 'b', 'x-wardrop': 'overflow; engine="b"' };
    measurement.add('west', turn('1'), onlyA, result('answered', 1, { headers }));
    expect(measurement.result().overflowed).toBe(1);
    expect(unexplainedFlows(measurement.result())).toEqual([]);
    measurement.add('west', turn('2'), onlyA, result('answered', 1, { headers: { 'x-engine': 'b' } }));
    expect(unexplainedFlows(measurement.result()).map(({ engine }) => engine)).toEqual(['a', 'b']);
  });

  it('explains by chance what whole conversations do by chance, and nothing more', () => {
    const play = (weightOfA: number, turns: number, plannedOfA = 0.5) => {
      const measurement = new Measurement(SECONDS);
      const random = new Random(5);
      const planned: Weights = new Map([
        ['a', plannedOfA],
        ['b', 1 - plannedOfA],
      ]);
      for (let conversation = 0; conversation < 1000; conversation++) {
        const headers = { 'x-engine': random.unit() < weightOfA ? 'a' : 'b' };
        for (let i = 0; i < turns; i++) {
          measurement.add('west', turn(String(conversation)), planned, result('answered', 1, { headers }));
        }
      }
      return measurement.result();
    };
    expect(unexplainedFlows(play(0.5, 4))).toEqual([]);
    expect(unexplainedFlows(play(0.6, 4)).map(({ engine }) => engine)).toEqual(['a', 'b']);
    // Where five conversations in a thousand are due, it happens that none comes.
    expect(unexplainedFlows(play(0, 4, 0.005))).toEqual([]);
    const errors = [1, 4].map((turns) => play(0.5, turns).flows[0]!.standardErrorRps / turns);
    expect(errors[0]).toBeCloseTo(errors[1]!);
  });
});
