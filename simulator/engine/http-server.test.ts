import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { PATIENCE_MS } from '../../test/patience.js';
import { EngineServer } from './http-server.js';
import { type EngineParameters, engineKinds } from './parameters.js';

const fast: EngineParameters = { ...engineKinds['sim-100']!, stepBaseSeconds: 0.001 };
/** No token comes out while a test runs. */
const stuck: EngineParameters = { ...fast, stepBaseSeconds: 3600, maxWaiting: 1 };

let server: EngineServer;
let url: string;

async function start(parameters: EngineParameters, oneWayDelayMs = new Map<string, number>()): Promise<void> {
  server = new EngineServer({ id: 'a', models: ['demo-8b', 'alias'], parameters, oneWayDelayMs });
  url = `http://127.0.0.1:${(await server.listen('127.0.0.1', 0)).port}`;
}

afterEach(() => server.close());

const hello = { model: 'demo-8b', messages: [{ role: 'user', content: 'hello' }], max_tokens: 3 };

function post(body: unknown, signal?: AbortSignal): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return fetch(`${url}/v1/chat/completions`, { method: 'POST', body: text, ...(signal ? { signal } : {}) });
}

/** Value of a sample of the metrics page, labels as they come. */
async function metric(name: string): Promise<number> {
  const page = await (await fetch(`${url}/metrics`)).text();
  const line = page.split('\n').find((candidate) => candidate.startsWith(name));
  return Number(line?.slice(line.lastIndexOf(' ')));
}

describe('EngineServer', () => {
  it('answers a chat request with as many tokens as were asked for, and says who it is', async () => {
    await start(fast);
    const response = await post(hello);
    const body = (await response.json()) as { choices: { message: { content: string } }[]; usage: object };
    expect([response.status, response.headers.get('x-engine')]).toEqual([200, 'a']);
    expect(body).toMatchObject({ object: 'chat.completion', model: 'demo-8b' });
    expect(body.choices).toMatchObject([{ message: { role: 'assistant' }, finish_reason: 'length' }]);
    expect(body.choices[0]!.message.content).toHaveLength(3 * 4);
    expect(body.usage).toEqual({
      prompt_tokens: 4,
      completion_tokens: 3,
      total_tokens: 7,
      prompt_tokens_details: { cached_tokens: 0 },
    });
  });

  it('streams the same answer as events, with usage on request, up to [DONE]', async () => {
    await start(fast);
    const whole = (await (await post(hello)).json()) as { choices: [{ message: { content: string } }] };
    const response = await post({ ...hello, stream: true, stream_options: { include_usage: true } });
    expect(response.headers.get('content-type')).toContain('text/event-stream');
    const events = (await response.text()).split('\n\n').filter(Boolean);
    expect(events.at(-1)).toBe('data: [DONE]');
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice('data: '.length)));
    const choices = chunks.flatMap(({ choices: [choice] }) => choice ?? []);
    expect(choices[0].delta).toEqual({ role: 'assistant', content: '' });
    expect(choices.map(({ delta }) => delta.content).join('')).toBe(whole.choices[0].message.content);
    expect(choices.map(({ finish_reason }) => finish_reason)).toEqual([null, null, null, 'length']);
    expect(chunks.at(-1).usage).toMatchObject({ prompt_tokens: 4, completion_tokens: 3 });
  });

  it('finds the earlier turns of a conversation in its cache', async () => {
    await start(fast);
    const first = { role: 'user', content: 'a long question '.repeat(20) };
    const answer = (await (await post({ ...hello, messages: [first], max_tokens: 40 })).json()) as {
      choices: [{ message: { role: string; content: string } }];
    };
    const messages = [first, answer.choices[0].message, { role: 'user', content: 'and then?' }];
    const next = (await (await post({ ...hello, messages })).json()) as {
      usage: { prompt_tokens: number; prompt_tokens_details: { cached_tokens: number } };
    };
    const { prompt_tokens, prompt_tokens_details } = next.usage;
    expect(prompt_tokens).toBeGreaterThan(120);
    expect(prompt_tokens_details.cached_tokens).toBe(112);
  });

  it('sends the headers of a stream before there is a token', async () => {
    await start(stuck);
    const leaving = new AbortController();
    const response = await post({ ...hello, stream: true }, leaving.signal);
    expect(response.status).toBe(200);
    expect(await metric('vllm:generation_tokens_total')).toBe(0);
    leaving.abort();
  });

  it.each([true, false])('forgets a request whose client has left (streamed: %s)', async (stream) => {
    await start(stuck);
    const leaving = new AbortController();
    const requests = [post(hello, leaving.signal), post({ ...hello, stream }, leaving.signal)];
    await vi.waitFor(async () => {
      expect([await metric('vllm:num_requests_running'), await metric('vllm:num_requests_waiting')]).toEqual([
        1, 1,
      ]);
    }, PATIENCE_MS);
    leaving.abort();
    await Promise.allSettled(requests);
    await vi.waitFor(async () => expect(await metric('vllm:num_requests_waiting')).toBe(0), PATIENCE_MS);
    expect(await metric('vllm:request_success_total{finished_reason="abort"')).toBe(2);
  });

  it('refuses with 503 when its queue is full', async () => {
    await start(stuck);
    const leaving = new AbortController();
    const requests = [post(hello, leaving.signal), post(hello, leaving.signal)];
    await vi.waitFor(async () => expect(await metric('vllm:num_requests_waiting')).toBe(1), PATIENCE_MS);
    const refused = await post(hello);
    expect([refused.status, refused.headers.get('x-engine')]).toEqual([503, 'a']);
    expect(await refused.json()).toMatchObject({ error: { code: 503, type: 'ServiceUnavailableError' } });
    leaving.abort();
    await Promise.allSettled(requests);
  });

  it.each([
    ['no JSON', '{', 400, 'BadRequestError'],
    ['no messages', { ...hello, messages: [] }, 400, 'BadRequestError'],
    ['a message without a role', { ...hello, messages: [{ content: 'x' }] }, 400, 'BadRequestError'],
    ['no whole number of tokens', { ...hello, max_tokens: 1.5 }, 400, 'BadRequestError'],
    ['more tokens than the model has room for', { ...hello, max_tokens: 8190 }, 400, 'BadRequestError'],
    ['an unknown model', { ...hello, model: 'other' }, 404, 'NotFoundError'],
  ])('explains what is wrong with %s in the form of OpenAI errors', async (_, body, status, type) => {
    await start(fast);
    const response = await post(body);
    expect(response.status).toBe(status);
    expect(await response.json()).toMatchObject({
      error: { message: expect.any(String), type, code: status },
    });
  });

  it('lists its models and is healthy', async () => {
    await start(fast);
    const models = (await (await fetch(`${url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(models.data.map(({ id }) => id)).toEqual(['demo-8b', 'alias']);
    expect((await fetch(`${url}/health`)).status).toBe(200);
    expect((await fetch(`${url}/nowhere`)).status).toBe(404);
  });

  it("has vLLM's metrics", async () => {
    await start(fast);
    await (await post(hello)).json();
    const page = await (await fetch(`${url}/metrics`)).text();
    const counted: Record<string, number> = {
      'vllm:prompt_tokens_total{': 4,
      'vllm:generation_tokens_total{': 3,
      'vllm:prefix_cache_queries_total{': 4,
      'vllm:prefix_cache_hits_total{': 0,
      'vllm:num_requests_running{': 0,
      'vllm:num_requests_waiting{': 0,
      'vllm:kv_cache_usage_perc{': 0,
      'vllm:time_to_first_token_seconds_count{': 1,
      'vllm:inter_token_latency_seconds_count{': 2,
      'vllm:e2e_request_latency_seconds_count{': 1,
      'vllm:request_queue_time_seconds_count{': 1,
      'vllm:request_prompt_tokens_sum{': 4,
      'vllm:request_generation_tokens_sum{': 3,
    };
    for (const [name, value] of Object.entries(counted))
      expect([name, await metric(name)]).toEqual([name, value]);
    expect(page).toContain('model_name="demo-8b"');
  });

  it('takes at least the round trip to answer a peer that is far away, in both directions', async () => {
    await start(fast, new Map([['127.0.0.77', 30]]));
    const startedAt = performance.now();
    const request = httpRequest(`${url}/health`, { localAddress: '127.0.0.77' });
    request.end();
    const [response] = await once(request, 'response');
    response.resume();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(58);
  });
});
