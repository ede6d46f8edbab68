import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MetricsSource } from '../../fleet/fleet.js';
import { PageReader } from './engine-metrics.js';
import { signalMapping } from './metric-names.js';

const page = (name: string) => readFileSync(new URL(`fixtures/${name}.txt`, import.meta.url), 'latin1');

/** Values of the signals that have one. */
function read(kind: MetricsSource['kind'], text: string, names: MetricsSource['names'] = {}): object {
  const reading = new PageReader(signalMapping({ kind, path: '/metrics', names })).read(text);
  return Object.fromEntries(
    [...reading].flatMap(([signal, read]) => ('value' in read ? [[signal, read.value]] : [])),
  );
}

function problem(
  kind: MetricsSource['kind'],
  text: string,
  signal: 'running' | 'waiting' | 'kvUse',
): unknown {
  return new PageReader(signalMapping({ kind, path: '/metrics' })).read(text).get(signal);
}

describe('names', () => {
  it('vLLM: the old, the new and both names of the cache use give the same reading', () => {
    for (const name of ['old-name', 'both-names', 'new-name']) {
      expect(read('vllm', page(name))).toEqual({ running: 12, waiting: 41, kvUse: 0.97 });
    }
  });

  it('vLLM: a cache use under no known name is missing, not zero', () => {
    expect(read('vllm', page('neither'))).toEqual({ running: 12, waiting: 41 });
    expect(problem('vllm', page('neither'), 'kvUse')).toEqual({ problem: 'missing' });
  });

  it('SGLang: colons and underscores give the same reading', () => {
    const expected = { running: 17, waiting: 9, kvUse: 0.88 };
    expect(read('sglang', page('colon'))).toEqual(expected);
    expect(read('sglang', page('underscore'))).toEqual(expected);
    expect(read('sglang', page('colon').replaceAll('acme-chat-8b', 'org/acme:v1'))).toEqual(expected);
  });

  it('counters are found with and without _total', () => {
    expect(read('vllm', 'vllm:prefix_cache_hits_total 3\nvllm:prefix_cache_queries 4')).toEqual({
      prefixHits: 3,
      prefixQueries: 4,
    });
  });

  it('histograms: sums and counts of times to first tokens and between tokens, by today’s and by older names', () => {
    const histogram = (name: string, sum: number, count: number) =>
      [
        `${name}_bucket{le="0.1"} 1`,
        `${name}_bucket{le="+Inf"} ${count}`,
        `${name}_sum ${sum}`,
        `${name}_count ${count}`,
        `${name}_created 1.7e9`,
      ].join('\n');
    const expected = { firstTokenSeconds: 9, firstTokens: 30, tokenGapSeconds: 4, tokenGaps: 200 };
    for (const kind of ['vllm', 'sglang'] as const) {
      const first = histogram(`${kind}:time_to_first_token_seconds`, 9, 30);
      const older = histogram(`${kind}:time_per_output_token_seconds`, 4, 200);
      const newer = histogram(`${kind}:inter_token_latency_seconds`, 4, 200);
      expect(read(kind, `${first}\n${older}`)).toEqual(expected);
      expect(read(kind, `${older.replaceAll('4', '0').replaceAll('200', '0')}\n${first}\n${newer}`)).toEqual(
        expected,
      );
    }
  });

  it('TensorRT-LLM, Triton and TGI: requests and cache use are found by the names of each', () => {
    const trtllm =
      'trtllm_num_requests_running 3\ntrtllm_num_requests_waiting 4\ntrtllm_kv_cache_utilization 0.5';
    expect(read('trtllm', trtllm)).toEqual({ running: 3, waiting: 4, kvUse: 0.5 });
    const triton = [
      'nv_trt_llm_request_metrics{model="m",request_type="active",version="1"} 9',
      'nv_trt_llm_request_metrics{model="m",request_type="waiting",version="1"} 4',
      'nv_trt_llm_request_metrics{model="m",request_type="scheduled",version="1"} 5',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="used",model="m",version="1"} 700',
      'nv_trt_llm_kv_cache_block_metrics{kv_cache_block_type="fraction",model="m",version="1"} 0.25',
    ].join('\n');
    expect(read('triton', triton)).toEqual({ running: 5, waiting: 4, kvUse: 0.25 });
    expect(read('tgi', 'tgi_queue_size 2\ntgi_batch_current_size 7')).toEqual({ running: 7, waiting: 2 });
  });

  it('configured names come before those of the kind', () => {
    const text = 'busy{state="run"} 6\nbusy{state="idle"} 60\nvllm:num_requests_running 1';
    expect(read('custom', text, { running: 'busy{state="run"}' })).toEqual({ running: 6 });
    expect(read('vllm', text, { running: 'busy{state="run"}' })).toEqual({ running: 6 });
    expect(read('vllm', text, { running: 'gone' })).toEqual({ running: 1 });
  });
});

describe('series', () => {
  it('data-parallel ranks add up, their cache use is averaged, and their order does not matter', () => {
    const lines = page('data-parallel').trim().split('\n');
    const expected = { running: 47, waiting: 12, kvUse: expect.closeTo(0.5575, 12) };
    expect(read('vllm', lines.join('\n'))).toEqual(expected);
    expect(read('vllm', [...lines].reverse().join('\n'))).toEqual(expected);
  });

  it('tensor- and pipeline-parallel ranks describe the same requests, which count once', () => {
    const ranks = [0, 1].flatMap((dp) =>
      [0, 1].map((tp) => `sglang:num_running_reqs{dp_rank="${dp}",tp_rank="${tp}",pp_rank="0"} ${5 + dp}`),
    );
    expect(read('sglang', ranks.join('\n'))).toEqual({ running: 11 });
  });

  it('of ranks that describe the same requests the largest counts, in whatever order they stand', () => {
    const uses = [0.12, 0.93, 0.4].map((use, tp) => `sglang:token_usage{tp_rank="${tp}",pp_rank="0"} ${use}`);
    for (const lines of [uses, uses.toReversed()]) {
      expect(read('sglang', lines.join('\n'))).toEqual({ kvUse: 0.93 });
    }
  });

  it('requests of each priority are not counted again beside those of all, and make them up where there is no such sum', () => {
    const lines = [0, 1].flatMap((rank) =>
      [
        ['', 14],
        ['-9223372036854775808', 0],
        ['0', 9],
        ['10', 5],
      ].map(
        ([priority, value]) =>
          `sglang:num_running_reqs{dp_rank="${rank}",priority="${priority}",tp_rank="0"} ${value}`,
      ),
    );
    expect(read('sglang', lines.join('\n'))).toEqual({ running: 28 });
    expect(read('sglang', lines.filter((line) => !line.includes('""')).join('\n'))).toEqual({ running: 28 });
  });

  it('a page with more series than are read says so, and nothing else: a part of them would be a wrong sum', () => {
    const series = (count: number) =>
      Array.from({ length: count }, (_, rank) => `vllm:num_requests_running{engine="${rank}"} 1`).join('\n');
    expect(problem('vllm', series(4_096), 'running')).toMatchObject({ value: 4_096 });
    expect(problem('vllm', series(4_097), 'running')).toEqual({ problem: 'crowded' });
    expect(problem('vllm', series(100_000), 'waiting')).toEqual({ problem: 'crowded' });
  });

  it('a line that breaks off makes its signal unknown, also among others that are fine, and no other', () => {
    const text =
      'vllm:num_requests_waiting 2\nvllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="1';
    expect(problem('vllm', text, 'running')).toEqual({ problem: 'invalid' });
    expect(problem('vllm', text, 'waiting')).toMatchObject({ value: 2 });
  });

  it('a series that is there twice counts once, whatever the order of its labels', () => {
    const text = 'vllm:num_requests_running{a="1",b="2"} 3\nvllm:num_requests_running{b="2",a="1"} 4';
    expect(read('vllm', text)).toEqual({ running: 4 });
  });

  it('a value that the signal cannot have makes it unknown, also among others that are fine', () => {
    for (const bad of ['NaN', '-1', '+Inf', '1e30', 'many']) {
      const text = `vllm:num_requests_running{engine="0"} 3\nvllm:num_requests_running{engine="1"} ${bad}`;
      expect(problem('vllm', text, 'running')).toEqual({ problem: 'invalid' });
    }
    expect(problem('vllm', 'vllm:kv_cache_usage_perc 97', 'kvUse')).toEqual({ problem: 'invalid' });
  });

  it('a broken new name leaves the old one', () => {
    const text = 'vllm:kv_cache_usage_perc NaN\nvllm:gpu_cache_usage_perc 0.5';
    expect(problem('vllm', text, 'kvUse')).toEqual({ value: 0.5, source: 'vllm:gpu_cache_usage_perc' });
  });
});

describe('whatever a page holds', () => {
  const ranks = fc.uniqueArray(fc.nat(30), { minLength: 1, maxLength: 8 });
  const rows = ranks.chain((names) =>
    fc.tuple(
      ...names.map((name) =>
        fc.tuple(fc.constant(name), fc.nat(500), fc.double({ min: 0, max: 1, noNaN: true })),
      ),
    ),
  );
  /** Of other metrics, comments, and what no parser would take. */
  const noise = fc.oneof(
    fc.constantFrom(
      '',
      '# EOF',
      '# TYPE vllm:num_requests_running gauge',
      '<html>',
      '{"vllm": 1}',
      '\0',
      '}{"',
    ),
    fc.string().map((text) => `# vllm:num_requests_running ${text.replaceAll('\n', '')}`),
    fc
      .tuple(fc.constantFrom('vllm:num_requests_running_total_x', 'vllm:num_requests', 'up'), fc.string())
      .map(([name, text]) => `${name} ${text.replaceAll('\n', '')}`),
  );
  const lineOf = (name: string, rank: number, value: number, end: string) =>
    `${name}{engine="${rank}"} ${value}${end}`;

  it('sums and means are those of its series, in any order and among any noise', () => {
    const end = fc.constantFrom('', ' ', ' 1700000000', ' # {trace_id="x"} 9 1.0', '\r');
    fc.assert(
      fc.property(rows, fc.array(noise), end, fc.infiniteStream(fc.nat()), (values, others, tail, order) => {
        const lines = values.flatMap(([rank, running, use]) => [
          lineOf('vllm:num_requests_running', rank, running, tail),
          lineOf('vllm:kv_cache_usage_perc', rank, use, tail),
        ]);
        const shuffled = [...lines, ...others]
          .map((line) => ({ line, at: order.next().value as number }))
          .sort((a, b) => a.at - b.at)
          .map(({ line }) => line);
        const mean = values.reduce((sum, [, , use]) => sum + use, 0) / values.length;
        expect(read('vllm', shuffled.join('\n'))).toEqual({
          running: values.reduce((sum, [, running]) => sum + running, 0),
          kvUse: expect.closeTo(mean, 9),
        });
      }),
    );
  });

  it('a reading is a number that the signal can have, or a reason', () => {
    const name = fc.constantFrom(
      'vllm:num_requests_running',
      'vllm_num_requests_waiting',
      'vllm:kv_cache_usage_perc',
      'vllm:gpu_cache_usage_perc',
      'vllm:prefix_cache_hits_total',
      'sglang:num_running_reqs',
    );
    const labels = fc.oneof(
      fc.constant(''),
      fc.constant('{}'),
      fc.string().map((text) => `{a="${text}`),
      fc.constant('{engine="1",}'),
    );
    const value = fc.oneof(
      fc.double().map(String),
      fc.string(),
      fc.constantFrom('NaN', '+Inf', '-0', '0x1p4', '1e999', '1_0', ''),
    );
    const line = fc.oneof(
      noise,
      fc.tuple(name, labels, value).map(([a, b, c]) => `${a}${b} ${c}`),
    );
    fc.assert(
      fc.property(fc.array(line), fc.nat(), (lines, cut) => {
        const text = lines.join('\n');
        for (const page of [text, text.slice(0, cut % (text.length + 1))]) {
          const reading = new PageReader(signalMapping({ kind: 'vllm', path: '/metrics' })).read(page);
          expect(reading.size).toBe(10);
          for (const [signal, found] of reading) {
            if (!('value' in found)) continue;
            expect(found.value).toBeGreaterThanOrEqual(0);
            expect(found.value).toBeLessThanOrEqual(signal === 'kvUse' ? 1 : Number.MAX_SAFE_INTEGER);
          }
        }
      }),
    );
  });
});
