import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { fitProfile } from './fit.js';
import { readBenchmark } from './readers/read.js';
import type { FitResult } from './result.js';

function fitFile(file: string, config?: string): FitResult {
  const text = readFileSync(new URL(`../data/${file}`, import.meta.url), 'utf8');
  const filters = config === undefined ? [] : [{ name: 'config', value: config }];
  return fitProfile('x', readBenchmark(file, text, { replicas: 1, filters }));
}

const largest = (errors: (number | undefined)[]) =>
  Math.max(...errors.filter((error) => error !== undefined).map(Math.abs));

function errorsOf({ stages }: FitResult): { ttft: number; tbot: number } {
  return {
    ttft: largest(stages.map(({ ttft }) => (ttft?.used ? ttft.error : undefined))),
    tbot: largest(stages.map(({ tbot }) => (tbot?.used ? tbot.error : undefined))),
  };
}

/** Closed forms fitted to the same runs elsewhere: capacity in requests/s, times in ms, errors as shares. */
const kubecon = [
  {
    config: 'vllm+chunking_and_prefix_caching',
    capacity: 173,
    base: 7.37,
    kappa: 0.374,
    a: 28,
    b: 1.28,
    ttftError: 0.07,
    tbotError: 0.02,
  },
  {
    config: 'vllm+quantization',
    capacity: 172,
    base: 7.25,
    kappa: 0.371,
    a: 28.4,
    b: 0.75,
    ttftError: 0.09,
    tbotError: 0.01,
  },
  {
    config: 'vllm',
    capacity: 103,
    base: 6.93,
    kappa: 0.617,
    a: 30.3,
    b: 2.42,
    ttftError: 0.06,
    tbotError: 0.05,
  },
  {
    config: 'vllm+batch_size',
    capacity: 114,
    base: 6.62,
    kappa: 0.742,
    a: 32.2,
    b: 2.45,
    ttftError: 0.08,
    tbotError: 0.12,
  },
  {
    config: 'vllm+eagle',
    capacity: 68,
    base: 10.26,
    kappa: 0.591,
    a: 35.9,
    b: 4.25,
    ttftError: 0.04,
    tbotError: 0.1,
  },
];

describe('fitProfile on Llama-3.1-8B, one H100, vLLM (KubeCon NA 2025 demo)', () => {
  it.each(kubecon)('reproduces the published closed form of the run $config', (expected) => {
    const result = fitFile('kubecon2025-llama31-8b-h100.csv', expected.config);
    const { ttft, tbot } = result.profile!;
    expect(result.capacities[0]!.requestsPerSecond / expected.capacity).toBeCloseTo(1, 2);
    expect(Math.abs((1000 * tbot.baseSeconds) / expected.base - 1)).toBeLessThan(0.02);
    expect(Math.abs(tbot.kappa - expected.kappa)).toBeLessThan(0.01);
    expect(Math.abs((1000 * ttft.baseSeconds) / expected.a - 1)).toBeLessThan(0.02);
    expect(Math.abs((1000 * ttft.queueSeconds) / expected.b - 1)).toBeLessThan(0.2);
    expect(errorsOf(result).ttft).toBeLessThan(expected.ttftError);
    expect(errorsOf(result).tbot).toBeLessThan(expected.tbotError);
  });

  it('leaves the overloaded stages out of the curves', () => {
    const { stages } = fitFile('kubecon2025-llama31-8b-h100.csv', 'vllm+chunking_and_prefix_caching');
    expect(stages.map(({ use }) => use)).toEqual([...Array(5).fill('curves'), 'overload', 'overload']);
  });

  it('gives no profile for the run with two stages below capacity', () => {
    const result = fitFile('kubecon2025-llama31-8b-h100.csv', 'vllm+v0_engine');
    expect(result.profile).toBeUndefined();
    expect(result.warnings.map(({ code }) => code)).toContain('too-few-stages');
  });

  it('gives the same profile from the reports, whose time per token is half the truth, as from the table', () => {
    const reports = fitFile('kubecon2025-llama31-8b-h100-chunked.jsonl');
    const table = fitFile('kubecon2025-llama31-8b-h100.csv', 'vllm+chunking_and_prefix_caching');
    expect(reports.warnings.map(({ code }) => code)).toContain('doubled-tbot');
    expect(reports.profile!.tbot.baseSeconds / table.profile!.tbot.baseSeconds).toBeCloseTo(1, 3);
    expect(reports.profile!.ttft.baseSeconds / table.profile!.ttft.baseSeconds).toBeCloseTo(1, 3);
    expect(reports.profile!.work.secondsPerRequest / table.profile!.work.secondsPerRequest).toBeCloseTo(1, 4);
  });
});

describe('fitProfile on Llama-3.1-70B, four H100 (llm-d)', () => {
  it('reports how far the concave TTFT lies from the curve, and that the capacity is a lower bound', () => {
    const result = fitFile('llmd-llama31-70b-h100x4.csv');
    expect(result.capacities[0]).toMatchObject({ requestsPerSecond: 5, saturated: false });
    expect(errorsOf(result).ttft).toBeGreaterThan(0.25);
    const ttftWarning = result.warnings.find(({ code }) => code === 'ttft-misfit')!;
    expect(ttftWarning.message).toContain('29 %');
    expect(ttftWarning.message).toContain('concave');
  });
});

describe('fitProfile on GLM-5, eight H200 (InferenceX)', () => {
  it('finds the work of a prompt token in closed-loop runs of six sizes, and no profile', () => {
    const result = fitFile('inferencex-glm5-fp8-h200x8.csv');
    expect(result.profile).toBeUndefined();
    expect(result.work!.work.secondsPerUncachedPromptToken).toBeGreaterThan(0.00011);
    expect(result.work!.work.secondsPerUncachedPromptToken).toBeLessThan(0.00013);
    expect(result.work!.maxError).toBeLessThan(0.07);
    expect(result.warnings.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['closed-loop', 'too-few-stages', 'medians']),
    );
  });
});
