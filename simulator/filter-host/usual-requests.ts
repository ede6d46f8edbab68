import { encodeSnapshot } from '../../wire/snapshot-writer.js';
import type { Vm } from './host.js';
import type { Stream } from './stream.js';

const ENGINES = [0, 1];
const OF_EACH_KIND = 300;
const BETWEEN_TICKS = 100;
const LONG_BODIES = 10;

export const usualConfig = {
  frontendId: 'west',
  readBodies: true,
  maxBodyBytes: 8 << 20,
  tenantHeader: 'x-tenant',
  routeRetries: 2,
  placement: true,
};

const snapshot = encodeSnapshot({
  version: 1,
  planId: '0123456789abcdef',
  issuedAtMs: 1_700_000_000_000,
  frontendId: usualConfig.frontendId,
  salt: 'pepper',
  models: [
    { name: 'chat', pool: 0, needs: [0], pools: [0, 0] },
    { name: 'chat-long', pool: 0, needs: [0, 1], pools: [0, 0, 0, 0] },
  ],
  pools: [
    {
      id: 'chat',
      cluster: 'pool-chat',
      engines: ENGINES,
      segments: ENGINES.map((owner) => ({ start: owner * 2 ** 31, owner, backup: 1 - owner })),
      retryRatio: 0.2,
      shedFraction: 0,
    },
  ],
  engines: ENGINES.map((engine) => ({
    id: `e${engine}`,
    replicas: [0, 1].map((replica) => ({ address: `10.0.${engine}.${replica}:8000`, ready: true })),
  })),
  needs: [
    { id: 'eu-only', when: { kind: 'header', name: 'x-data-residency', value: 'eu' } },
    { id: 'long-context', when: { kind: 'promptTokens', above: 100_000 } },
  ],
  nearest: ENGINES,
});

/** Serves what most requests are like where all is well: key and model in headers or in bodies, answers in one piece or streamed. */
export function serveUsual(vm: Vm): void {
  vm.tick();
  vm.answer(200, snapshot);
  for (let number = 0; number < OF_EACH_KIND; number++) {
    vm.host.nowMs += 1;
    if (number % BETWEEN_TICKS === 0) vm.tick();
    answer(withHeaders(vm, number));
    stream(withHeaders(vm, number));
    answer(withBody(vm, number, 1_000));
    stream(withBody(vm, number, 1_000));
    if (number < LONG_BODIES) answer(withBody(vm, number, 100_000));
  }
}

/** What Envoy and most clients send, too. */
function headers(more: Record<string, string>): Record<string, string> {
  return {
    ':scheme': 'http',
    'user-agent': 'OpenAI/Python 2.0.0',
    accept: 'application/json',
    'content-type': 'application/json',
    'content-length': '2048',
    'x-tenant': 'acme',
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
    'x-request-id': '3a2b1f0e-9d8c-4b7a-a6f5-e4d3c2b1a098',
    ...more,
  };
}

function withHeaders(vm: Vm, number: number): Stream {
  return vm
    .request(headers({ 'x-wardrop-model': 'chat', 'x-session-id': `conversation-${number}` }))
    .send('{}', true);
}

function withBody(vm: Vm, number: number, length: number): Stream {
  const content = 'The quick brown fox jumps over the lazy dog. '.repeat(length / 45);
  const body = {
    model: 'chat-long',
    messages: [
      { role: 'system', content: 'You are a helpful assistant.' },
      { role: 'user', content },
      { role: 'assistant', content: 'Yes: "it does".\n' },
      { role: 'user', content },
    ],
    user: `user-${number}`,
    temperature: 0.7,
    max_tokens: 256,
  };
  return vm.request(headers({})).send(JSON.stringify(body), true);
}

function answer(stream: Stream): void {
  const usage = { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 };
  const message = { role: 'assistant', content: 'Hello.' };
  respond(stream, 'application/json')
    .responseBody(JSON.stringify({ object: 'chat.completion', choices: [{ index: 0, message }], usage }))
    .responseBody('', true)
    .end();
}

function stream(stream: Stream): void {
  respond(stream, 'text/event-stream');
  for (let event = 0; event < 10; event++) {
    stream.responseBody(`data: {"choices":[{"index":0,"delta":{"content":"token ${event}"}}]}\n\n`);
  }
  stream.responseBody('data: [DONE]\n\n', true).end();
}

function respond(stream: Stream, type: string): Stream {
  if (!stream.forwarded) throw new Error(`a usual request is refused: ${JSON.stringify(stream.reply)}`);
  return stream.respond(200, {
    headers: [
      ['content-type', type],
      ['date', 'Thu, 01 Jan 2026 00:00:00 GMT'],
      ['x-envoy-upstream-service-time', '10'],
    ],
  });
}
