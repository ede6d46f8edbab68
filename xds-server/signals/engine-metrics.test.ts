import { expect, it } from 'vitest';
import { readVllmPage } from './engine-metrics.js';

it('reads running and waiting requests and adds up ranks', () => {
  const page = [
    '# TYPE vllm:num_requests_running gauge',
    'vllm:num_requests_running{engine="0",model_name="org/acme:v1"} 17.0',
    'vllm:num_requests_running{engine="1",model_name="a } b\\" c"} 3.0',
    'vllm:num_requests_waiting{engine="0"} 9 1700000000',
    'vllm:num_requests_waiting_by_reason{reason="capacity"} 100',
  ].join('\n');
  expect(readVllmPage(page)).toEqual({ running: 20, waiting: 9 });
});

it('what is missing or no count is unknown, not zero', () => {
  expect(readVllmPage('')).toEqual({ running: undefined, waiting: undefined });
  expect(readVllmPage('vllm:num_requests_running NaN\nvllm:num_requests_waiting -1')).toEqual({
    running: undefined,
    waiting: undefined,
  });
});
