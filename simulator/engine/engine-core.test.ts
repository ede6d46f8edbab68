import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { EngineCore, type EngineRequest, type Sequence } from './engine-core.js';
import type { EngineParameters } from './parameters.js';

const small: EngineParameters = {
  stepBaseSeconds: 0.01,
  secondsPerSequence: 0.001,
  secondsPerContextToken: 1e-5,
  secondsPerBatchToken: 1e-4,
  freeBatchTokens: 8,
  maxRunning: 4,
  maxBatchTokens: 16,
  maxWaiting: 1000,
  kvBlocks: 16,
  blockTokens: 4,
  maxModelTokens: 60,
};

function request(conversation: number, promptTokens: number, outputTokens: number): EngineRequest {
  const length = Math.floor((promptTokens + outputTokens) / small.blockTokens);
  const blockIds = Array.from({ length }, (_, index) => conversation * 100 + index);
  return { promptTokens, outputTokens, blockIds };
}

const anyRequest = fc
  .tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 20 }))
  .map((size) => request(...size));

const anyEvent = fc.record({
  gap: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 0.2, noNaN: true })),
  request: anyRequest,
  abort: fc.option(fc.nat(), { freq: 3 }),
});

/** Plays arrivals and aborts, then drains the engine; checks after each step. */
function play(
  events: readonly { gap: number; request: EngineRequest; abort: number | null }[],
  check: (core: EngineCore) => void,
) {
  const submitted: Sequence[] = [];
  const tokens = new Map<Sequence, number[]>();
  const core = new EngineCore(small, (sequence, at) => tokens.get(sequence)!.push(at));
  let now = 0;
  for (const event of events) {
    now += event.gap;
    const sequence = core.submit(event.request, now)!;
    submitted.push(sequence);
    tokens.set(sequence, []);
    if (event.abort !== null) core.abort(submitted[event.abort % submitted.length]!);
    check(core);
  }
  while (core.nextEventAt < Number.POSITIVE_INFINITY) {
    core.advance(core.nextEventAt);
    check(core);
  }
  return { core, submitted, tokens };
}

describe('EngineCore', () => {
  it('answers every request with exactly its tokens, in order of time, unless it was aborted', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const { core, submitted, tokens } = play(events, () => {});
        expect([core.running, core.waiting, core.kvUse]).toEqual([0, 0, 0]);
        for (const sequence of submitted) {
          const times = tokens.get(sequence)!;
          expect(times).toEqual([...times].sort((a, b) => a - b));
          expect(times.length).toBe(sequence.generated);
          if (!sequence.aborted) expect(sequence.generated).toBe(sequence.request.outputTokens);
        }
      }),
    );
  });

  it('never runs more than the batch, never holds more than the memory', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        play(events, (core) => {
          expect(core.running).toBeLessThanOrEqual(small.maxRunning);
          expect(core.kvUse).toBeLessThanOrEqual(1);
        });
      }),
    );
  });

  it('starts requests in the order of their arrival', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const { submitted } = play(events, () => {});
        const starts = submitted.filter(({ aborted }) => !aborted).map(({ startedAt }) => startedAt);
        expect(starts).toEqual([...starts].sort((a, b) => a - b));
      }),
    );
  });

  it('finds in the cache only whole blocks that an earlier request with the same beginning has computed', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const { core, submitted } = play(events, () => {});
        submitted.forEach((sequence, index) => {
          const { cachedTokens, request } = sequence;
          const blocks = cachedTokens / small.blockTokens;
          expect(Number.isInteger(blocks)).toBe(true);
          expect(cachedTokens).toBeLessThan(request.promptTokens);
          const earlier = submitted.slice(0, index).filter(({ startedAt }) => startedAt < sequence.startedAt);
          const known = new Set(earlier.flatMap((other) => other.request.blockIds));
          expect(request.blockIds.slice(0, blocks).every((id) => known.has(id))).toBe(true);
        });
        const started = submitted.filter(({ startedAt }) => !Number.isNaN(startedAt));
        const sum = (value: (sequence: Sequence) => number) =>
          started.reduce((total, s) => total + value(s), 0);
        expect(core.prefixCache).toEqual({
          queriedTokens: sum(({ request }) => request.promptTokens),
          hitTokens: sum(({ cachedTokens }) => cachedTokens),
        });
      }),
    );
  });

  it('obeys the law of Little: requests in it over time are the times that requests are in it', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 40 }), (events) => {
        const submitted: Sequence[] = [];
        let sojourns = 0;
        const core = new EngineCore(small, (sequence, at) => {
          if (sequence.finished) sojourns += at - sequence.arrivedAt;
        });
        let now = 0;
        let area = 0;
        const until = (end: number) => {
          while (now < end) {
            const next = Math.min(end, core.nextEventAt);
            area += (core.running + core.waiting) * (next - now);
            now = next;
            core.advance(now);
          }
        };
        for (const event of events) {
          until(now + event.gap);
          submitted.push(core.submit(event.request, now)!);
        }
        while (core.nextEventAt < Number.POSITIVE_INFINITY) until(core.nextEventAt);
        expect(submitted.every(({ finished }) => finished)).toBe(true);
        expect(area).toBeCloseTo(sojourns, 6);
      }),
    );
  });

  it('is a function of its input', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 20 }), (events) => {
        const times = () => [...play(events, () => {}).tokens.values()];
        expect(times()).toEqual(times());
      }),
      { numRuns: 20 },
    );
  });

  it('takes the time of the step formula and one iteration per token after the prompt', () => {
    const times: number[] = [];
    const core = new EngineCore(small, (_, at) => times.push(at));
    core.submit(request(0, 10, 3), 0);
    core.advance(10);
    const step = (context: number, computed: number) =>
      0.01 + 0.001 + 1e-5 * context + 1e-4 * Math.max(0, computed - 8);
    const first = step(10, 10);
    const second = first + step(11, 1);
    expect(times).toEqual([first, second, second + step(12, 1)]);
  });

  it('computes a long prompt in chunks of the token budget while others go on decoding', () => {
    const order: string[] = [];
    const core = new EngineCore(small, ({ request }) => order.push(request.promptTokens > 16 ? 'L' : 's'));
    core.submit(request(0, 2, 8), 0);
    core.advance(0.02);
    core.submit(request(1, 40, 2), 0.02);
    core.advance(10);
    // The third to fifth iteration compute 15, 15 and 10 of the 40 tokens beside one of the short request.
    expect(order.join('')).toBe('sssssLsLss');
  });

  it('does not compute again what the previous turn of a conversation left in the cache', () => {
    const core = new EngineCore(small, () => {});
    const first = core.submit(request(0, 10, 4), 0)!;
    core.advance(10);
    const second = core.submit(request(0, 24, 4), 10)!;
    core.advance(20);
    // 13 of the 14 tokens were computed (the last one was only emitted): three whole blocks.
    expect([first.cachedTokens, second.cachedTokens]).toEqual([0, 12]);
    expect(second.firstTokenAt - second.arrivedAt).toBeCloseTo(0.011 + 24e-5 + 4e-4, 10);
  });

  it('takes the youngest sequence out when memory ends and finishes it later', () => {
    const core = new EngineCore(small, () => {});
    const sequences = [0, 1, 2].map((id) => core.submit(request(id, 16, 16), 0)!);
    core.advance(100);
    expect(core.preemptions).toBeGreaterThan(0);
    expect(sequences[0]!.preemptions).toBe(0);
    expect(sequences.map(({ generated }) => generated)).toEqual([16, 16, 16]);
  });

  it('refuses when the queue is full and takes requests again when it is not', () => {
    const core = new EngineCore({ ...small, maxRunning: 1, maxWaiting: 2 }, () => {});
    const submit = (now: number) => core.submit(request(0, 4, 4), now);
    expect([submit(0), submit(0), submit(0), submit(0)].map(Boolean)).toEqual([true, true, true, false]);
    expect(Boolean(submit(1))).toBe(true);
  });

  it('tells of requests that an iteration had no room for, not of those that came while it ran', () => {
    const core = new EngineCore({ ...small, maxRunning: 1 }, () => {});
    core.submit(request(0, 4, 4), 0);
    core.submit(request(1, 4, 4), 0);
    expect([core.waiting, core.passedOver]).toEqual([1, 0]);
    core.advance(core.nextEventAt);
    expect([core.waiting, core.passedOver]).toEqual([1, 1]);
    core.advance(100);
    expect([core.waiting, core.passedOver]).toEqual([0, 0]);
  });

  it('rejects a request that can never run', () => {
    const core = new EngineCore(small, () => {});
    expect(core.fits({ promptTokens: 59, outputTokens: 1 })).toBe(true);
    expect(core.fits({ promptTokens: 60, outputTokens: 1 })).toBe(false);
    expect(() => core.submit(request(0, 60, 1), 0)).toThrow(RangeError);
  });

  it('finds preloaded blocks like those of an earlier sequence, and never preloads over running ones', () => {
    const core = new EngineCore(small, () => {});
    const first = request(1, 20, 4);
    core.preload(first.blockIds);
    const sequence = core.submit(first, 0)!;
    expect(sequence.cachedTokens).toBe(16);
    const used = core.kvUse;
    core.preload(Array.from({ length: small.kvBlocks }, (_, index) => 900 + index));
    expect(core.kvUse).toBe(used);
  });

  it('takes so many times as long for iterations that begin while it is slow', () => {
    const times: number[] = [];
    const core = new EngineCore(small, (_, at) => times.push(at));
    core.submit(request(1, 4, 3), 0);
    core.slowness = 3;
    while (core.nextEventAt < Number.POSITIVE_INFINITY) core.advance(core.nextEventAt);
    const [first, second] = times as [number, number];
    const step = small.stepBaseSeconds + small.secondsPerSequence + 5 * small.secondsPerContextToken;
    expect(second - first).toBeCloseTo(3 * step, 9);
  });
});
