import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { ask, engineOf, event, JSON_BODY, SSE, started, token, usage } from './observed.js';
import { reportOf } from './reported.js';
import { deliver, sketch } from './snapshots.js';

const module = filterModule();

describe('an answer that is not streamed', () => {
  it('has a duration from the request to its end', () => {
    const vm = started();
    const stream = ask(vm).respond(200, { headers: JSON_BODY });
    vm.host.nowMs += 3000;
    stream.responseBody('{').responseBody('}').endWithTrailers().end();
    expect(engineOf(vm)).toMatchObject({ wholeSecondsSum: 3, wholeCount: 1, firstTokenCount: 0 });
  });

  it('is no sample of latency when it is an error or breaks off', () => {
    const vm = started();
    ask(vm).respond(404, { headers: JSON_BODY }).responseBody('{}', true).end();
    ask(vm).respond(200, { headers: JSON_BODY }).responseBody('{').end();
    expect(engineOf(vm)).toMatchObject({ wholeCount: 0, firstTokenCount: 0, ended: 2 });
  });

  it.each([
    ['whole', JSON_BODY, '{}'],
    ['a stream', SSE, token],
  ])(
    'that a retry has brought took its engine as long as others at most, or nobody knows how long, whatever time was lost before: %s',
    (_, headers, body) => {
      const vm = started([{ weight: 1 }, { weight: 1 }]);
      const at = (engine: number): Stream => {
        for (let key = 0; ; key++) {
          const stream = vm.request({ 'x-wardrop-model': 'm', 'x-session-id': `${key}` });
          if (stream.endpoints[0]!.startsWith(`10.0.${engine}.`)) return stream;
          stream.end();
        }
      };
      const answer = (stream: Stream, seconds: number, attempts: number) => {
        vm.host.nowMs += 1000 * seconds;
        stream.respond(200, { attempts, headers }).responseBody(body, true).end();
      };
      const timesOf = (engine: number) => {
        const { wholeCount, wholeSecondsSum, firstTokenCount, firstTokenSecondsSum } = reportOf(
          vm,
        ).engines.find((usage) => usage.engine === id64(`e${engine}`))!;
        return { answers: wholeCount + firstTokenCount, seconds: wholeSecondsSum + firstTokenSecondsSum };
      };
      answer(at(0), 120, 2);
      expect(timesOf(1)).toEqual({ answers: 0, seconds: 0 });
      answer(at(1), 2, 1);
      answer(at(0), 120, 2);
      expect(timesOf(1)).toEqual({ answers: 2, seconds: 4 });
      answer(at(0), 1, 2);
      expect(timesOf(1)).toEqual({ answers: 3, seconds: 5 });
    },
  );

  it('tells its tokens in its last bytes, and a text that looks alike does not', () => {
    const vm = started();
    const content = 'x'.repeat(5000) + JSON.stringify({ usage: { prompt_tokens: 9, completion_tokens: 9 } });
    const body = JSON.stringify({ choices: [{ message: { content } }], ...usage(30, 12), metadata: null });
    const stream = ask(vm).respond(200, { headers: JSON_BODY });
    for (let at = 0; at < body.length; at += 700) stream.responseBody(body.slice(at, at + 700));
    stream.responseBody('', true).end();
    ask(vm)
      .respond(200, { headers: JSON_BODY })
      .responseBody(JSON.stringify({ choices: [{ message: { content } }] }), true)
      .end();
    expect(engineOf(vm)).toMatchObject({
      usageCount: 1,
      promptTokens: 30,
      outputTokens: 12,
      cachedOfTokens: 0,
    });
  });

  it('is timed always, and read ten times a tick for each engine of a pool, always when an access log is told', () => {
    const answer = (vm: Vm, times: number) => {
      for (let i = 0; i < times; i++) {
        const stream = ask(vm).respond(200, { headers: JSON_BODY });
        stream.responseBody(JSON.stringify(usage(30, 12)), true).end();
      }
    };
    const vm = started();
    answer(vm, 25);
    vm.tick();
    answer(vm, 4);
    const measured = { wholeCount: 29, usageCount: 14, outputTokens: 14 * 12 };
    expect(engineOf(vm)).toMatchObject({ ...measured, ended: 29, status2xx: 29 });

    const logging = new Host(module).startVm({ frontendId: 'west', logFields: true });
    deliver(logging, sketch([{ weight: 1 }]));
    answer(logging, 25);
    expect(engineOf(logging)).toMatchObject({ wholeCount: 25, usageCount: 25 });
  });

  it('is not looked into when it is encoded', () => {
    const vm = started();
    for (const encoding of ['gzip', 'Identity']) {
      const headers: Headers = [...JSON_BODY, ['content-encoding', encoding]];
      ask(vm)
        .respond(200, { headers })
        .responseBody(JSON.stringify(usage(1, 1)), true)
        .end();
    }
    expect(engineOf(vm)).toMatchObject({ usageCount: 1, wholeCount: 2 });
  });
});

describe('the names of tokens', () => {
  const told = (body: string, headers = JSON_BODY) => {
    const vm = started();
    ask(vm).respond(200, { headers }).responseBody(body).responseBody('', true).end();
    const { promptTokens, cachedTokens, cachedOfTokens, outputTokens } = engineOf(vm);
    return { promptTokens, cachedTokens, cachedOfTokens, outputTokens };
  };

  it("are OpenAI's for responses", () => {
    const body = {
      usage: { input_tokens: 50, input_tokens_details: { cached_tokens: 40 }, output_tokens: 7 },
      user: null,
    };
    expect(told(JSON.stringify(body))).toEqual({
      promptTokens: 50,
      cachedTokens: 40,
      cachedOfTokens: 50,
      outputTokens: 7,
    });
  });

  it("are Anthropic's, which counts cached tokens apart", () => {
    const body = {
      usage: {
        input_tokens: 10,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 85,
        output_tokens: 7,
      },
    };
    expect(told(JSON.stringify(body))).toEqual({
      promptTokens: 100,
      cachedTokens: 85,
      cachedOfTokens: 100,
      outputTokens: 7,
    });
  });

  it("are those at the beginning and at the end of Anthropic's streams", () => {
    const start = { message: { usage: { input_tokens: 25, cache_read_input_tokens: 5, output_tokens: 1 } } };
    const delta = { usage: { output_tokens: 15 } };
    const filling = event({ delta: { text: 'x'.repeat(3000) } });
    const vm = started();
    ask(vm)
      .respond(200, { headers: SSE })
      .responseBody(`event: message_start\n${event(start)}`)
      .responseBody(filling)
      .responseBody(`event: message_delta\n${event(delta)}event: message_stop\n${event({})}`)
      .responseBody('', true)
      .end();
    expect(engineOf(vm)).toMatchObject({ promptTokens: 30, cachedTokens: 5, outputTokens: 15 });
  });

  it.each([
    '{"usage":{"prompt_tokens":5,"completion_tokens":',
    '{"usage":null}',
    '{"usage":"prompt_tokens"}',
    '{"usage":{"prompt_tokens":-5,"completion_tokens":"7"}}',
    '{"usage":{"prompt_tokens":99999999999999,"completion_tokens":1e9999999999}}'.replace('1e', ''),
    '"usage":{',
    '{"usage":{"',
    '{"usage":{"a\\',
  ])('are not believed in %s', (body) => {
    expect(told(body)).toEqual({ promptTokens: 0, cachedTokens: 0, cachedOfTokens: 0, outputTokens: 0 });
  });
});

describe('an answer that does not come to its end', () => {
  const SILENT = 'upstream_per_try_idle_timeout';
  const RESET = 'upstream_reset_after_response_started{connection_termination}';

  it('is stalled when the engine was silent for too long, and broken when the engine broke it off', () => {
    const vm = started();
    ask(vm).respond(200, { headers: SSE }).end(SILENT);
    ask(vm).respond(200, { headers: SSE }).responseBody(token).end(SILENT);
    ask(vm).respond(200, { headers: SSE }).responseBody(token).end(RESET);
    ask(vm).respond(200, { headers: SSE }).responseBody(token).end('downstream_remote_disconnect');
    ask(vm).respond(200, { headers: SSE }).responseBody(token, true).end('via_upstream');
    expect(engineOf(vm)).toMatchObject({ stalled: 2, broken: 1, failures: 3, ended: 5 });
  });

  it('speaks against a replica, though it sends its headers early', () => {
    const vm = started([{ weight: 1 }, { weight: 1 }]);
    const key = { 'x-wardrop-model': 'm', 'x-session-id': 'a' };
    const [first] = vm.request(key).endpoints;
    for (let i = 0; i < 3; i++) {
      vm.request(key).respond(200, { address: first!, headers: SSE }).end(SILENT);
    }
    expect(vm.request(key).endpoints[0]).not.toBe(first);
  });
});
