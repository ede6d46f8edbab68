import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { readBenchmark } from './read.js';

const sample = (name: string) => readFileSync(new URL(`../../data/samples/${name}`, import.meta.url), 'utf8');
const published = (name: string) => readFileSync(new URL(`../../data/${name}`, import.meta.url), 'utf8');

function read(text: string, replicas = 1, filters: { name: string; value: string }[] = []) {
  return readBenchmark('file', text, { replicas, filters });
}

/** The third stage of the sweep that all samples come from. */
const stage = {
  offeredRps: 85.5,
  completedRps: 84.773,
  ttftSeconds: 0.02886,
  reportedTbotSeconds: 0.008954,
  e2eSeconds: 0.57877,
  statistic: 'mean',
  concurrencyLimit: undefined,
  flaggedOverload: false,
};

describe('readBenchmark', () => {
  it('reads vllm bench serve results, one a line', () => {
    const stages = read(sample('vllm-bench-serve.jsonl'));
    expect(stages).toHaveLength(7);
    expect(stages[2]).toMatchObject({ ...stage, place: 'file:3', requests: 5130 });
    expect(stages[2]!.promptTokens).toBeCloseTo(203.06, 1);
    expect(stages[2]!.outputTokens).toBeCloseTo(62.41, 1);
    expect(stages[2]!.durationSeconds).toBeCloseTo(60.515, 2);
    expect(stages[6]!.offeredRps).toBe(Infinity);
  });

  it('reads one vllm bench serve result alone, or several in an array', () => {
    const line = sample('vllm-bench-serve.jsonl').split('\n')[2]!;
    expect(read(JSON.stringify(JSON.parse(line), null, 2))[0]).toMatchObject({ ...stage, place: 'file' });
    expect(read(`[${line},\n${line}]`)[1]).toMatchObject({ ...stage, place: 'file[1]' });
  });

  it('reads sglang.bench_serving results, with the bare Infinity that Python writes', () => {
    const text = sample('sglang-bench-serving.jsonl');
    expect(text).toContain('"request_rate": Infinity');
    const stages = read(text);
    expect(stages).toHaveLength(7);
    expect(stages[2]).toMatchObject(stage);
    expect(stages[6]!.offeredRps).toBe(Infinity);
  });

  it('reads AIPerf at a request rate', () => {
    expect(read(sample('profile_export_aiperf.json'))).toEqual([
      {
        ...stage,
        place: 'file',
        promptTokens: 203.06,
        uncachedPromptTokens: 203.06,
        outputTokens: 62.41,
        durationSeconds: 60.515,
        requests: 5130,
      },
    ]);
  });

  it('reads GenAI-Perf at a concurrency as unpaced', () => {
    expect(read(sample('profile_export_genai_perf.json'))[0]).toMatchObject({
      ...stage,
      offeredRps: Infinity,
      concurrencyLimit: 49,
    });
  });

  it('reads inference-perf stage reports', () => {
    const stages = read(published('kubecon2025-llama31-8b-h100-chunked.jsonl'));
    expect(stages).toHaveLength(7);
    expect(stages[2]!.offeredRps).toBe(85.5);
    expect(stages[2]!.ttftSeconds).toBeCloseTo(0.028864, 6);
    expect(stages[2]!.reportedTbotSeconds).toBeCloseTo(0.004254, 6);
    expect(stages[2]!.e2eSeconds).toBeCloseTo(0.578771, 6);
    expect(stages[2]!.durationSeconds).toBeCloseTo(60.515, 2);
  });

  it('reads the cached part of prompts where inference-perf reports it', () => {
    const report = JSON.parse(published('kubecon2025-llama31-8b-h100-chunked.jsonl').split('\n')[2]!);
    delete report.successes.prompt_len;
    report.successes.prompt_tokens = {
      mean: 200,
      total: 200 * 5130,
      cached: 150 * 5130,
      uncached: 50 * 5130,
    };
    expect(read(JSON.stringify(report))[0]).toMatchObject({ promptTokens: 200, uncachedPromptTokens: 50 });
  });

  it('reads a CSV with the documented columns, and divides by its replicas', () => {
    const text =
      'offered_rps,completed_rps,replicas,prompt_tokens,cached_prompt_tokens,output_tokens,ttft_ms,tbot_ms,overload\n' +
      '8,7.9,4,900,800,100,50,10,false\n\n12,8,4,900,800,100,5000,20,true\n';
    const stages = read(text);
    expect(stages[0]).toMatchObject({
      place: 'file:2',
      offeredRps: 2,
      completedRps: 7.9 / 4,
      promptTokens: 900,
      uncachedPromptTokens: 100,
      ttftSeconds: 0.05,
      reportedTbotSeconds: 0.01,
      flaggedOverload: false,
    });
    expect(stages[1]).toMatchObject({ place: 'file:4', flaggedOverload: true });
  });

  it('reads published tables by their own column names, one configuration at a time', () => {
    const table = published('kubecon2025-llama31-8b-h100.csv');
    const config = [{ name: 'config', value: 'vllm+chunking_and_prefix_caching' }];
    expect(read(table, 1, config)[2]).toMatchObject(stage);
    expect(() => read(table)).toThrow(/file: holds 6 configurations. Choose one: --where config=/);
    expect(read(published('inferencex-glm5-fp8-h200x8.csv'))[0]).toMatchObject({
      offeredRps: Infinity,
      concurrencyLimit: 4,
      statistic: 'median',
      ttftSeconds: 0.265,
    });
  });

  it('shares the load among the replicas given', () => {
    const stages = read(sample('vllm-bench-serve.jsonl'), 2);
    expect(stages[2]).toMatchObject({ offeredRps: 42.75, requests: 2565 });
  });

  it('reads quoted cells', () => {
    const text =
      'config,offered_rps,completed_rps,prompt_tokens,output_tokens,ttft_s,tbot_s\n"a, ""b""",1,1,9,9,1,1\n';
    expect(read(text, 1, [{ name: 'config', value: 'a, "b"' }])).toHaveLength(1);
  });

  it('leaves the time between tokens open for answers of one token', () => {
    const text = 'offered_rps,completed_rps,prompt_tokens,output_tokens,ttft_s\n1,1,900,1,0.2\n';
    expect(read(text)[0]!.reportedTbotSeconds).toBeUndefined();
  });
});

describe('readBenchmark refuses', () => {
  const vllm = JSON.parse(sample('vllm-bench-serve.jsonl').split('\n')[2]!);
  const csv = 'offered_rps,completed_rps,prompt_tokens,output_tokens,ttft_s,tbot_s\n';
  const refused: readonly [string, string, RegExp][] = [
    [
      'a missing field',
      JSON.stringify({ ...vllm, mean_tpot_ms: undefined }),
      /file: mean_tpot_ms is missing. Rerun/,
    ],
    [
      'a negative time',
      JSON.stringify({ ...vllm, mean_ttft_ms: -3 }),
      /file: mean_ttft_ms is -3, expected more than 0/,
    ],
    [
      'NaN',
      JSON.stringify(vllm).replace(/"mean_ttft_ms":[\d.]+/, '"mean_ttft_ms":NaN'),
      /mean_ttft_ms is "NaN", not a/,
    ],
    [
      'text for a number',
      JSON.stringify({ ...vllm, duration: 'long' }),
      /file: duration is "long", not a number/,
    ],
    ['a stage without successes', JSON.stringify({ ...vllm, completed: 0 }), /completed is 0.*leave it out/],
    ['a ramp', JSON.stringify({ ...vllm, ramp_up_strategy: 'linear' }), /ramps during the run/],
    [
      'a trace replay',
      JSON.stringify({ ...vllm, request_rate: 'trace' }),
      /request_rate is "trace", not a number/,
    ],
    ['damaged JSON', '{"request_rate": 1,\n"mean_ttft_ms": }', /file(:2)?: is not JSON/],
    ['a line cut off', `${JSON.stringify(vllm)}\n{"request_rate": 1, `, /file:2: is not JSON.*cut off/],
    ['unknown JSON', '{"hello": 1}', /file: is no benchmark summary.*vllm bench serve/],
    ['an empty array', '[]', /file: holds no benchmark result/],
    ['an array of numbers', '[1]', /file\[0\]: is not an object/],
    ['an empty file', '', /file: holds no rows/],
    [
      'a CSV without a column',
      'offered_rps,completed_rps\n1,1\n',
      /file:2: .* is missing. Add a column named one of prompt_tokens, prompt_tokens_mean, /,
    ],
    [
      'a CSV with a column misspelt',
      csv.replace('ttft_s', 'tfft_s').concat('1,1,9,9,1,1\n'),
      /file:2: ttft_s is missing\. Is tfft_s meant to be ttft_s\? Add a column/,
    ],
    ['an empty cell', `${csv}1,1,9,9,,1\n`, /file:2: ttft_s is empty\. Rerun that stage or leave it out/],
    [
      'an unknown unit',
      sample('profile_export_aiperf.json').replaceAll('"ms"', '"h"'),
      /unknown unit of time "h"/,
    ],
    ['a CSV line with a cell too few', `${csv}1,1,9,9,1\n`, /file:2: has 5 cells, the header has 6/],
    ['a negative cell', `${csv}1,1,9,9,1,1\n2,-2,9,9,1,1\n`, /file:3: completed_rps is -2/],
    ['NaN in a cell', `${csv}1,1,9,9,NaN,1\n`, /file:2: ttft_s is "NaN", not a number/],
    ['an unclosed quote', `${csv}"1,1,9,9,1,1\n`, /file:2: has an unclosed or misplaced quote/],
    [
      'more cached than prompt',
      'offered_rps,completed_rps,prompt_tokens,cached_prompt_tokens,output_tokens,ttft_s,tbot_s\n1,1,9,10,9,1,1\n',
      /10 cached of 9/,
    ],
    [
      'a strange overload flag',
      'offered_rps,completed_rps,prompt_tokens,output_tokens,ttft_s,tbot_s,overload\n1,1,9,9,1,1,yes\n',
      /expected true or false/i,
    ],
  ];

  it.each(refused)('%s', (_, text, message) => {
    expect(() => read(text)).toThrow(message);
    expect(() => read(text)).toThrow(expect.objectContaining({ code: 'WARDROP_BENCHMARK_INVALID' }));
  });

  it('a summary over all stages of inference-perf', () => {
    const report = JSON.parse(published('kubecon2025-llama31-8b-h100-chunked.jsonl').split('\n')[2]!);
    delete report.load_summary.requested_rate;
    expect(() => read(JSON.stringify(report))).toThrow(/no requested_rate.*stage_\*_lifecycle_metrics.json/);
  });

  it('a table that is not separated by commas', () => {
    expect(() => read('offered_rps;ttft_s\n1;0,03\n')).toThrow(/file:1: is separated by semicolons/);
    expect(() => read('offered_rps\tttft_s\n1\t0.03\n')).toThrow(/file:1: is separated by tabs/);
  });

  it('a filter that names no column, or that no row passes', () => {
    const row = `${csv}1,1,9,9,1,1\n`;
    expect(() => read(row, 1, [{ name: 'gpu', value: 'a' }])).toThrow(
      /file:1: has no column gpu. Columns are:/,
    );
    expect(() => read(row, 1, [{ name: 'ttft_s', value: '2' }])).toThrow(/no row passes the filter/);
  });
});
