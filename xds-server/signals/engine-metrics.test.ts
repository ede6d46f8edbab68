import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { MetricsSource } from '../fleet/fleet.js';
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
    for (const name of ['M1-old-name', 'M1-both-names', 'M1-new-name']) {
      expect(read('vllm', page(name))).toEqual({ running: 12, waiting: 41, kvUse: 0.97 });
    }
  });

  it('vLLM: a cache use under no known name is missing, not zero', () => {
    expect(read('vllm', page('M1-neither'))).toEqual({ running: 12, waiting: 41 });
    expect(problem('vllm', page('M1-neither'), 'kvUse')).toEqual({ problem: 'missing' });
  });

  it('SGLang: colons and underscores give the same reading', () => {
    const expected = { running: 17, waiting: 9, kvUse: 0.88 };
    expect(read('sglang', page('M2-colon'))).toEqual(expected);
    expect(read('sglang', page('M2-underscore'))).toEqual(expected);
    expect(read('sglang', page('M2-colon').replaceAll('acme-chat-8b', 'org/acme:v1'))).toEqual(expected);
  });

  it('counters are found with and without _total', () => {
    expect(read('vllm', 'vllm:prefix_cache_hits_total 3\nvllm:prefix_cache_queries 4')).toEqual({
      prefixHits: 3,
      prefixQueries: 4,
    });
  });

  it('TensorRT-LLM, Triton and TGI', () => {
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
    const lines = page('M3-data-parallel').trim().split('\n');
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
