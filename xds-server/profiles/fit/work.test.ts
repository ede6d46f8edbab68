import { describe, expect, it } from 'vitest';
import type { Capacity } from './capacity.js';
import { fitWork } from './work.js';

function capacity(promptTokens: number, outputTokens: number, secondsPerRequest: number): Capacity {
  return {
    promptTokens,
    uncachedPromptTokens: promptTokens,
    outputTokens,
    requestsPerSecond: 1 / secondsPerRequest,
    interval: undefined,
    saturated: true,
    saturatedStages: 2,
    collapse: 0,
  };
}

describe('fitWork', () => {
  it('counts requests when all have one size', () => {
    const { work, identified } = fitWork([capacity(200, 60, 0.01)]);
    expect(work.secondsPerRequest).toBeCloseTo(0.01, 12);
    expect(work).toMatchObject({ secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 });
    expect(identified).toEqual(['secondsPerRequest']);
  });

  it('gives work to the kind of token that varies', () => {
    const { work } = fitWork([capacity(1000, 100, 0.03), capacity(3000, 100, 0.07)]);
    expect(work.secondsPerRequest).toBeCloseTo(0.01, 9);
    expect(work.secondsPerUncachedPromptToken).toBeCloseTo(2e-5, 12);
  });

  it('explains two sizes that differ in both kinds of token by tokens alone', () => {
    const { work, identified, maxError } = fitWork([capacity(1000, 100, 0.03), capacity(2000, 300, 0.07)]);
    expect(identified).toEqual(['secondsPerUncachedPromptToken', 'secondsPerOutputToken']);
    expect(work.secondsPerRequest).toBe(0);
    expect(maxError).toBeLessThan(1e-9);
  });

  it('gives the work of prompts and answers that grow in step to the answers', () => {
    const { identified } = fitWork([1, 2, 4].map((k) => capacity(1000 * k, 100 * k, 0.02 * k)));
    expect(identified).toEqual(['secondsPerRequest', 'secondsPerOutputToken']);
  });

  it('never lets a request without prompt cost nothing', () => {
    const { work, maxError } = fitWork([capacity(1000, 100, 0.02), capacity(4000, 100, 0.08)]);
    expect(work.secondsPerRequest).toBeGreaterThan(0);
    expect(maxError).toBeLessThan(0.011);
  });
});
