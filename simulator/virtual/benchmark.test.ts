import { describe, expect, it } from 'vitest';
import { conversationShape } from '../demo/scenario.js';
import { engineKinds } from '../engine/parameters.js';
import { benchmark, saturationRps } from './benchmark.js';

const capacities = { 'sim-100': 100, 'sim-80': 80 };

describe('the engine kinds under the requests of the demo', () => {
  it.each(Object.entries(capacities))(
    '%s answers %d requests per second when never idle',
    (kind, capacity) => {
      expect(saturationRps(engineKinds[kind]!, conversationShape, 80) / capacity).toBeCloseTo(1, 1.5);
    },
  );

  it('keep up with load below their capacity and fall behind above it', () => {
    const run = (rho: number) =>
      benchmark(engineKinds['sim-100']!, conversationShape, 100 * rho, {
        warmupSeconds: 15,
        seconds: 100,
        seed: 3,
      });
    const below = run(0.9);
    const above = run(1.2);
    expect(below.completedRps / below.offeredRps).toBeCloseTo(1, 1);
    expect(above.completedRps).toBeLessThan(103);
  });

  it('answer more slowly the more they are loaded, from queueing and from larger batches', () => {
    const results = [0.1, 0.5, 0.8, 0.95].map((rho) =>
      benchmark(engineKinds['sim-100']!, conversationShape, 100 * rho, {
        warmupSeconds: 15,
        seconds: 60,
        seed: 3,
      }),
    );
    const rising = (values: number[]) => expect(values).toEqual([...values].sort((a, b) => a - b));
    rising(results.map(({ ttftSeconds }) => ttftSeconds));
    rising(results.map(({ tbotSeconds }) => tbotSeconds));
    expect(results.at(-1)!.ttftSeconds / results[0]!.ttftSeconds).toBeGreaterThan(2);
  });

  it('find most of the prompts of returning conversations in their cache', () => {
    const { promptTokens, uncachedPromptTokens } = benchmark(engineKinds['sim-100']!, conversationShape, 80, {
      warmupSeconds: 15,
      seconds: 60,
      seed: 3,
    });
    expect(1 - uncachedPromptTokens / promptTokens).toBeGreaterThan(0.65);
  });
});
