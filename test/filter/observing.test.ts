import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { ask, event, JSON_BODY, SSE, started, token, usage } from './observed.js';
import { reportOf } from './reported.js';
import { deliver, sketch, sweep } from './snapshots.js';

const module = filterModule();

it('what an engine says under the name of our header is replaced', () => {
  const stream = ask(started()).respond(200, { headers: [['x-wardrop', 'floor; engine="other"']] });
  expect(stream.responseHeaders.filter(([name]) => name.startsWith('x-wardrop'))).toEqual([
    ['x-wardrop', 'planned; engine="e0"; plan="0123456789abcdef"'],
  ]);
});

describe('the prompts of a class', () => {
  it('have the tokens that answers tell, else those that bodies are estimated to have', () => {
    const vm = started();
    const messages = [{ role: 'user', content: 'x'.repeat(400 - 29) }];
    ask(vm, { messages }).respond(200, { headers: JSON_BODY }).responseBody('{}', true).end();
    ask(vm, { messages })
      .respond(200, { headers: JSON_BODY })
      .responseBody(JSON.stringify(usage(77, 5, 33)), true)
      .end();
    expect(reportOf(vm).pools).toMatchObject([
      {
        pool: id64('m'),
        priority: 0,
        bodiesRead: 2,
        promptCount: 2,
        promptTokens: 100 + 77,
        cachedTokens: 33,
        cachedOfTokens: 77,
        outputCount: 1,
        outputTokens: 5,
      },
    ]);
  });

  it('continue a conversation when they hold an earlier answer or name one', () => {
    const vm = started();
    const user = { role: 'user', content: 'x' };
    const bodies = [
      { messages: [user] },
      { messages: [user, { role: 'assistant', content: 'y' }, user] },
      { input: 'x', previous_response_id: 'resp_1' },
      { input: 'x', previous_response_id: null },
      { input: [user] },
      { input: [user, { type: 'function_call', name: 'f' }, { type: 'function_call_output', output: 'x' }] },
      { input: [user, { type: 'code_interpreter_call' }] },
    ];
    for (const body of bodies) ask(vm, body).respond(200).end();
    ask(vm).respond(200).end();
    expect(reportOf(vm).pools[0]).toMatchObject({ offered: 8, bodiesRead: 7, followUps: 4 });
  });
});

describe('attempts in flight', () => {
  // Replicas at rest have no rows.
  const inFlight = (vm: Vm) => ({
    e0: 0,
    e1: 0,
    ...Object.fromEntries(
      reportOf(vm).replicas.map(({ engine, sent, ended }) => [
        engine === id64('e0') ? 'e0' : 'e1',
        sent - ended,
      ]),
    ),
  });

  it('are where the attempt is that is answered', () => {
    const vm = started([{ weight: 1 }, { weight: 0 }]);
    const stream = ask(vm);
    expect(stream.retries).toBe(1);
    expect(inFlight(vm)).toEqual({ e0: 1, e1: 0 });
    stream.respond(200, { attempts: 2, headers: SSE });
    expect(inFlight(vm)).toEqual({ e0: 0, e1: 1 });
    stream.end();
    expect(inFlight(vm)).toEqual({ e0: 0, e1: 0 });
  });

  it('are none in the end, however requests end', () => {
    const vm = started([{ weight: 1 }, { weight: 1 }]);
    const ways: ((stream: Stream) => void)[] = [
      (stream) => stream.end(),
      (stream) => stream.vanish(),
      (stream) => stream.respond(200, { headers: SSE }).end(),
      (stream) => stream.respond(200, { headers: SSE }).vanish(),
      (stream) => stream.respond(200, { headers: SSE }).responseBody(token).vanish(),
      (stream) => stream.respond(200, { headers: SSE }).responseBody(token).responseBody('', true).end(),
      (stream) => stream.respond(200, { headers: JSON_BODY }).responseBody('{}', true).vanish(),
      (stream) => stream.respond(204, { ended: true }).end(),
      (stream) => stream.respond(503, { attempts: stream.retries + 1 }).end(),
      (stream) => stream.respond(200, { attempts: 2, headers: SSE }).responseBody(token).end(),
    ];
    for (let i = 0; i < 500; i++) {
      const stream = vm.request({ 'x-wardrop-model': 'm', 'x-session-id': `k${i}` });
      if (i % 3 === 0) deliver(vm, sketch([{ weight: 1 }, { weight: 1 }], { version: i + 2 }));
      ways[i % ways.length]!(stream);
    }
    sweep(vm);
    expect(inFlight(vm)).toEqual({ e0: 0, e1: 0 });
  });
});

describe('filter state for access logs', () => {
  function logging(): Vm {
    const vm = new Host(module).startVm({ frontendId: 'west', logFields: true });
    deliver(vm, sketch([{ weight: 1 }]));
    return vm;
  }

  it('tells engine, plan, reason, first token and tokens', () => {
    const vm = logging();
    const stream = ask(vm).respond(200, { headers: SSE });
    vm.host.nowMs += 321;
    stream
      .responseBody(token)
      .responseBody(event(usage(20, 11, 16)), true)
      .end();
    expect(Object.fromEntries(stream.filterState)).toEqual({
      'wardrop.engine': 'e0',
      'wardrop.plan': '0123456789abcdef',
      'wardrop.reason': 'planned',
      'wardrop.ttft_ms': '321',
      'wardrop.prompt_tokens': '20',
      'wardrop.cached_tokens': '16',
      'wardrop.output_tokens': '11',
    });
  });

  it('tells where a request was that never had an answer, and why one was refused', () => {
    const vm = logging();
    const lost = ask(vm);
    lost.end();
    expect(Object.fromEntries(lost.filterState)).toMatchObject({
      'wardrop.engine': 'e0',
      'wardrop.reason': 'planned',
    });
    const refused = vm.request({ 'x-wardrop-model': 'nobody' });
    refused.end();
    expect(Object.fromEntries(refused.filterState)).toMatchObject({ 'wardrop.reason': 'model-not-found' });
  });

  it('is not set when nobody asks for it', () => {
    const vm = started();
    const stream = ask(vm).respond(200);
    stream.end();
    expect(stream.filterState.size).toBe(0);
  });
});

it('every statistic is documented', () => {
  const docs = readFileSync(new URL('../../docs/filter.md', import.meta.url), 'utf8');
  const listed = docs.slice(docs.indexOf('## Statistics'), docs.indexOf('## Limits'));
  const names = [...started().host.metrics.keys()].map((name) => name.replace(/^wardrop_(requests_)?/, ''));
  expect(names.length).toBeGreaterThan(30);
  expect(names.filter((name) => !new RegExp(`[{,\\s\`_]${name}[},\`]`).test(listed))).toEqual([]);
});
