import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { MOST_LOADS_TOLD } from '../../wire/layout.js';
import {
  type EngineUsage,
  FIRST_TOKEN_BOUNDS,
  LOAD_NAMES,
  PACE_BOUNDS,
  type VmUsage,
} from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { deliver, sketch, sweep } from './snapshots.js';

const module = filterModule();
const SSE: Headers = [['content-type', 'text/event-stream; charset=utf-8']];
const JSON_BODY: Headers = [['content-type', 'application/json']];
const bodyOf = (request: object) => JSON.stringify({ model: 'm', ...request });

function started(engines = [{ weight: 1 }]): Vm {
  const vm = new Host(module).startVm({ frontendId: 'west', readBodies: true });
  deliver(vm, sketch(engines));
  return vm;
}

/** A request whose headers give its key, and with a body also its model. */
function ask(vm: Vm, body?: object): Stream {
  if (body === undefined) return vm.request({ 'x-wardrop-model': 'm', 'x-session-id': 'a' });
  return vm.request({ 'x-session-id': 'a', 'content-type': 'application/json' }).send(bodyOf(body), true);
}

function reportOf(vm: Vm): VmUsage {
  vm.host.nowMs += 1000;
  vm.tick();
  vm.answer(304);
  vm.host.nowMs += 1000;
  vm.tick();
  return decodeUsageReport(vm.call!.body).vms[0]!;
}

function engineOf(vm: Vm): EngineUsage {
  return reportOf(vm).engines[0]!;
}

const event = (data: object | string) =>
  `data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
const token = event({ choices: [{ delta: { content: 'x' } }] });
const usage = (prompt: number, output: number, cached?: number) => ({
  usage: {
    prompt_tokens: prompt,
    total_tokens: prompt + output,
    completion_tokens: output,
    prompt_tokens_details: cached === undefined ? null : { cached_tokens: cached },
  },
});

it('what an engine says under the name of our header is replaced', () => {
  const stream = ask(started()).respond(200, { headers: [['x-wardrop', 'floor; engine="other"']] });
  expect(stream.responseHeaders.filter(([name]) => name.startsWith('x-wardrop'))).toEqual([
    ['x-wardrop', 'planned; engine="e0"; plan="0123456789abcdef"'],
  ]);
});

/** How the names of events end that come before the first token. */
const PRELUDE = /(created|progress|_start|ping)$/;
/** So many bytes of data are looked at for a name. */
const LOOKED_AT = 91;

describe('a streamed answer', () => {
  it('has its first token with its body, not with its headers', () => {
    const vm = started();
    const stream = ask(vm);
    vm.host.nowMs += 10;
    stream.respond(200, { headers: SSE });
    vm.host.nowMs += 490;
    stream.responseBody(token);
    vm.host.nowMs += 1000;
    stream.responseBody(token, true).end();
    expect(engineOf(vm)).toMatchObject({
      firstTokenSecondsSum: 0.5,
      firstTokenCount: 1,
      wholeCount: 0,
    });
  });

  const named = (name: string, data: object = {}, end = '\n') =>
    `event: ${name}${end}data: ${JSON.stringify({ type: name, ...data })}${end}${end}`;

  it.each([
    ['a comment that only keeps the connection open', ': still waiting\n\n', token],
    ['comments and empty lines', ':\n\n\r\n: data: x\n\n:\n', token],
    ['an id and when to come back', 'id: 1\nretry: 3000\n\n', token],
    [
      'events that say that a response begins',
      named('response.created', { response: { instructions: 'x'.repeat(300), usage: null } }) +
        named('response.in_progress') +
        named('response.output_item.added') +
        named('response.content_part.added'),
      named('response.output_text.delta', { delta: 'x' }),
    ],
    [
      'events that say that a message begins',
      named('message_start', {}, '\r\n') +
        named('content_block_start', {}, '\r\n') +
        named('ping', {}, '\r\n'),
      named('content_block_delta', { delta: { text: 'x' } }, '\r\n'),
    ],
    [
      'such events where lines end in carriage returns',
      `: x\r\r${named('message_start', {}, '\r')}${named('ping', {}, '\r')}`,
      named('content_block_delta', {}, '\r'),
    ],
    ['a byte order mark', '\ufeff', token],
    ['a byte order mark and what counts for nothing', `\ufeff${named('ping')}: x\n`, token],
    ['data without anything in them', 'data:\n\ndata: \r\n\r\n', token],
    [
      'events that say in their data alone that a response begins',
      event({ type: 'response.created', response: { instructions: 'x'.repeat(300) } }) +
        event('{ "type" : "response.in_progress", "sequence_number": 1 }') +
        event({ type: 'response.reasoning_summary_part.added' }),
      event({ type: 'response.output_text.delta', delta: 'x' }),
    ],
    [
      'events that say in their data alone that a message begins',
      event({ type: 'message_start', message: {} }) + event('{"type": "ping"}'),
      event('{"type": "content_block_delta", "delta": {}}'),
    ],
  ])('does not begin with %s, however it is cut', (_what, prelude, first) => {
    const bytes = Buffer.from(prelude);
    for (const pieces of [1, 2, 3, 7, 16, 17, 1_000]) {
      const vm = started();
      const stream = ask(vm).respond(200, { headers: SSE });
      const size = Math.ceil(bytes.length / pieces);
      for (let at = 0; at < bytes.length; at += size) stream.responseBody(bytes.subarray(at, at + size));
      vm.host.nowMs += 2000;
      stream.responseBody(first).responseBody('', true).end();
      expect(engineOf(vm)).toMatchObject({ firstTokenSecondsSum: 2, firstTokenCount: 1 });
      // All in one piece.
      ask(vm)
        .respond(200, { headers: SSE })
        .responseBody(prelude + first, true)
        .end();
      expect(engineOf(vm)).toMatchObject({ firstTokenSecondsSum: 2, firstTokenCount: 2 });
    }
  });

  it('has the pace of its tokens after the first, as its usage counts them, however its end is cut', () => {
    const end = event({ choices: [], ...usage(20, 11, 16) }) + event('[DONE]');
    for (let cut = 0; cut <= end.length; cut += 7) {
      const vm = started();
      const stream = ask(vm).respond(200, { headers: SSE }).responseBody(token);
      vm.host.nowMs += 400;
      stream.responseBody(end.slice(0, cut)).responseBody(end.slice(cut), true).end();
      expect(engineOf(vm)).toMatchObject({
        paceTokens: 10,
        paceSecondsSum: expect.closeTo(0.4, 6),
        usageCount: 1,
        promptTokens: 20,
        cachedTokens: 16,
        cachedOfTokens: 20,
        outputTokens: 11,
      });
    }
  });

  it('without usage is taken to have a token an event, less the first and the last', () => {
    const ends = ['\n\n', '\r\n\r\n', '\r\r'];
    for (const end of ends) {
      const vm = started();
      const stream = ask(vm).respond(200, { headers: SSE });
      const body = Array.from({ length: 22 }, () => `data: {"x":1}${end}`).join('');
      for (let at = 0; at < body.length; at += 5) stream.responseBody(body.slice(at, at + 5));
      vm.host.nowMs += 1900;
      stream.responseBody('', true).end();
      expect(engineOf(vm)).toMatchObject({
        paceTokens: 19,
        paceSecondsSum: expect.closeTo(1.9, 6),
        usageCount: 0,
      });
      expect(reportOf(vm).pools[0]).toMatchObject({ outputCount: 1, outputTokens: 20, promptCount: 0 });
    }
  });

  it('has its events counted without comments, also when many come in one piece', () => {
    const vm = started();
    const body = `${token}: ping\n\n:\n${token}`.repeat(2_000);
    ask(vm).respond(200, { headers: SSE }).responseBody(body).responseBody('', true).end();
    expect(reportOf(vm).pools[0]).toMatchObject({ outputTokens: 4_000 - 2 });
  });

  it('has the same first token and events in whatever pieces it comes', () => {
    const name = fc.constantFrom(
      'ping',
      'response.created',
      'response.in_progress',
      'content_block_start',
      'x.delta',
    );
    const space = fc.constantFrom('', ' ', '  ');
    const line = fc.oneof(
      fc.constantFrom('', '', ':', ': data: x', 'id: 7', 'retry: 10', 'data:', 'data: ', 'x', 'data', 'dat'),
      name.map((each) => `event: ${each}`),
      fc
        .tuple(name, space, space, space, space)
        .map(([each, a, b, c, d]) => `data:${a}{${b}"type"${c}:${d}"${each}","x":1}`),
      fc.constantFrom(
        'data: {"x":1}',
        'data:[DONE]',
        'data: event: ping',
        `data: ${'x'.repeat(300)}`,
        'data: {"type',
        'data: {"type": "ping',
        `data: {"type": "${'x'.repeat(200)}.created"}`,
        `data: {"type":${' '.repeat(200)}"ping"}`,
      ),
    );
    const stream = fc.tuple(
      fc.constantFrom('', '\u{feff}'),
      fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 40 }),
    );
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 8 }), (parts, places) => {
        const body = Buffer.from(parts.flat(2).join(''));
        const cuts = [...new Set(places.map((place) => place % (body.length + 1)))].sort((a, b) => a - b);
        const vm = started();
        const answer = ask(vm).respond(200, { headers: SSE });
        for (const [index, start] of [0, ...cuts].entries()) {
          answer.responseBody(body.subarray(start, cuts[index]));
          vm.host.nowMs += 1000;
        }
        answer.responseBody('', true).end();
        const { firstToken, events } = read(body.toString('latin1'));
        const seconds = cuts.filter((cut) => cut < firstToken).length;
        const { pools, engines } = reportOf(vm);
        expect(engines[0]).toMatchObject(
          firstToken > body.length
            ? { firstTokenCount: 0 }
            : { firstTokenCount: 1, firstTokenSecondsSum: expect.closeTo(seconds, 6) },
        );
        expect(pools[0]).toMatchObject({ outputTokens: Math.max(0, events - 2) });
      }),
      { numRuns: 400 },
    );

    /** How many bytes of a stream have come when its first token shows, and how many events end in it. */
    function read(body: string): { firstToken: number; events: number } {
      let firstToken = Number.POSITIVE_INFINITY;
      let events = 0;
      let isPrelude = false;
      let isOpen = false;
      for (const found of body.matchAll(/(?:^\xef\xbb\xbf)?([^\r\n]*)(\r\n|\r|\n|$)/g)) {
        const [all, content, end] = [found[0], found[1]!, found[2]!];
        const start = found.index + all.length - content.length - end.length;
        if (content.startsWith('data:') && !isPrelude) {
          const shown = shownAt(content.slice(5), end !== '');
          if (shown === 'prelude') isPrelude = true;
          else if (shown !== undefined) firstToken = Math.min(firstToken, start + 5 + shown);
        }
        if (end === '') break;
        if (content.startsWith('event:')) isPrelude = PRELUDE.test(content);
        if (content === '') {
          isPrelude = false;
          if (isOpen) events++;
          isOpen = false;
        } else if (!content.startsWith(':')) isOpen = true;
      }
      return { firstToken, events };
    }

    /** How many bytes of data have come when they show a token, if they do; 'prelude' if they show that they are none. */
    function shownAt(data: string, isWhole: boolean): number | 'prelude' | undefined {
      const length = /^ *(\{ *("(t(y(p(e(" *(: *("[^"]*)?)?)?)?)?)?)?)?)?/.exec(data)![0].length;
      if (length > LOOKED_AT) return LOOKED_AT + 1;
      if (length < data.length) {
        const isName = data[length] === '"' && /"type" *: *"/.test(data.slice(0, length));
        return isName && PRELUDE.test(data.slice(0, length)) ? 'prelude' : length + 1;
      }
      return isWhole && data.trim() !== '' ? length + 1 : undefined;
    }
  });

  it('is measured, however many there are', () => {
    const vm = started();
    for (let i = 0; i < 25; i++) ask(vm).respond(200, { headers: SSE }).responseBody(token, true).end();
    expect(engineOf(vm)).toMatchObject({ firstTokenCount: 25 });
  });

  it('that breaks off has a first token and no pace', () => {
    const vm = started();
    ask(vm).respond(200, { headers: SSE }).responseBody(token).responseBody(token).end();
    expect(engineOf(vm)).toMatchObject({ firstTokenCount: 1, paceTokens: 0, ended: 1 });
  });

  it('counts in the buckets that its times belong to', () => {
    const vm = started();
    for (const [index, bound] of [...FIRST_TOKEN_BOUNDS, 1000].entries()) {
      const stream = ask(vm).respond(200, { headers: SSE });
      vm.host.nowMs += bound * 1000 - 0.01;
      stream.responseBody(token);
      vm.host.nowMs += (PACE_BOUNDS[index] ?? 5) * 1000 * 10 - 0.01;
      stream.responseBody(event(usage(1, 11)), true).end();
    }
    const { latencies } = reportOf(vm);
    expect(latencies).toEqual([
      {
        engine: id64('e0'),
        firstTokens: FIRST_TOKEN_BOUNDS.map(() => 1).concat(1),
        paces: PACE_BOUNDS.map(() => 1).concat(4),
      },
    ]);
  });
});

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

describe('the time limits', () => {
  const routeOf = (request: object) => ask(started(), request).header('x-wardrop-route');
  const prompt = (tokens: number) => [{ role: 'user', content: 'x'.repeat(tokens * 4 - 29) }];

  it('are those of streams by the length of the prompt', () => {
    expect(routeOf({ stream: true, messages: prompt(8192) })).toBe('stream-short');
    expect(routeOf({ stream: true, messages: prompt(8193) })).toBe('stream-medium');
    expect(routeOf({ stream: true, messages: prompt(32768) })).toBe('stream-medium');
    expect(routeOf({ stream: true, messages: prompt(32769) })).toBe('stream-long');
  });

  it('are the others for requests that ask for no stream, or whose body is not read', () => {
    expect(routeOf({ stream: false, messages: [] })).toBeUndefined();
    expect(ask(started()).header('x-wardrop-route')).toBeUndefined();
  });

  it('are not for clients to choose', () => {
    const sent = { 'x-wardrop-route': 'stream-long', 'x-session-id': 'a', 'x-wardrop-model': 'm' };
    expect(started().request(sent).header('x-wardrop-route')).toBeUndefined();
    const body = bodyOf({ stream: true });
    const read = started()
      .request({ 'x-wardrop-route': 'stream-long', 'content-type': 'application/json' })
      .send(body, true);
    expect(read.header('x-wardrop-route')).toBe('stream-short');
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

describe('load reports in responses', () => {
  const TEXT = 'endpoint-load-metrics';
  const BINARY = 'endpoint-load-metrics-bin';
  /** A field of `OrcaLoadReport`: a double, or an entry of a map to doubles. */
  const double = (field: number, value: number) => {
    const bytes = Buffer.alloc(9, (field << 3) | 1);
    bytes.writeDoubleLE(value, 1);
    return bytes;
  };
  const metric = (field: number, name: string, value: number) => {
    const entry = Buffer.concat([Buffer.from([10, name.length]), Buffer.from(name), double(2, value)]);
    return Buffer.concat([Buffer.from([(field << 3) | 2, entry.length]), entry]);
  };
  const report = Buffer.concat([
    double(1, 0.5),
    metric(4, 'cost', 3),
    metric(8, 'kv_cache_usage_perc', 0.93),
    metric(8, 'num_requests_waiting', 12),
    double(7, 0.25),
    double(9, 1.5),
  ]);

  /** What one response makes of the loads of its replica. */
  function loadOf(headers: Headers, trailers?: Headers) {
    const vm = started();
    const stream = ask(vm).respond(200, { headers: [...SSE, ...headers] });
    expect(stream.responseHeaders.map(([name]) => name)).not.toContain(TEXT);
    expect(stream.responseHeaders.map(([name]) => name)).not.toContain(BINARY);
    if (trailers) expect(stream.endWithTrailers(trailers).responseTrailers).toEqual([]);
    stream.end();
    const [load] = reportOf(vm).loads;
    if (!load) return undefined;
    expect(load).toMatchObject({ engine: id64('e0'), replica: id64('10.0.0.0:8000') });
    const told = LOAD_NAMES.flatMap((name, at) =>
      load.counts[at] ? [[name, Number((load.sums[at]! / load.counts[at]!).toPrecision(6))]] : [],
    );
    return { reports: load.reports, garbled: load.garbled, ...Object.fromEntries(told) };
  }

  it.each<[string, Headers]>([
    ['text', [[TEXT, 'TEXT named_metrics.kv_cache_usage_perc=0.93, named_metrics.num_requests_waiting=12']]],
    [
      'text with colons',
      [[TEXT, 'named_metrics.kv_cache_usage_perc:0.93,named_metrics.num_requests_waiting: 1.2e1']],
    ],
    [
      'JSON',
      [
        [
          TEXT,
          'JSON {"named_metrics":{"kv_cache_usage_perc":0.93,"num_requests_waiting":12},"mem":{"x":{}}}',
        ],
      ],
    ],
  ])('are read as %s', (_, headers) => {
    expect(loadOf(headers)).toEqual({ reports: 1, garbled: 0, kvUse: 0.93, waiting: 12 });
  });

  it.each<[string, Headers]>([
    ['of its own', [[BINARY, report.toString('base64')]]],
    ['without padding', [[BINARY, report.toString('base64url')]]],
    ['of text', [[TEXT, `BIN ${report.toString('base64')}`]]],
  ])('are read as binary in a header %s', (_, headers) => {
    const expected = { kvUse: 0.93, waiting: 12, utilization: 1.5, errorRate: 0.25 };
    expect(loadOf(headers)).toEqual({ reports: 1, garbled: 0, ...expected });
  });

  it('are read in trailers', () => {
    const trailers: Headers = [[TEXT, 'TEXT rps_fractional=7.5,eps=0']];
    expect(loadOf([], trailers)).toEqual({ reports: 1, garbled: 0, requestRate: 7.5, errorRate: 0 });
  });

  it('are kept from the client also where nobody knows who answered', () => {
    const headers: Headers = [
      [TEXT, 'TEXT eps=1'],
      [BINARY, report.toString('base64')],
    ];
    const native = new Host(module).startVm({ frontendId: 'west', nativeSteering: true });
    deliver(native, sketch([{ weight: 1 }]));
    const observing = new Host(module).startVm();
    deliver(observing, sketch([{ weight: 1 }], { steered: 0, pool: { shedFraction: 1 } }));
    for (const vm of [native, observing]) {
      const stream = ask(vm).respond(200, { address: '10.9.9.9:1', headers });
      const names = stream.responseHeaders.map(([name]) => name);
      expect(names.filter((name) => name === TEXT || name === BINARY)).toEqual([]);
      expect(stream.endWithTrailers(headers).responseTrailers).toEqual([]);
      stream.end();
    }
  });

  it('that tell nothing of interest are good reports all the same', () => {
    expect(loadOf([[TEXT, 'TEXT cpu_utilization=0.7']])).toEqual({ reports: 1, garbled: 0 });
  });

  it.each([
    'TEXT named_metrics.kv_cache_usage_perc=NaN',
    'TEXT named_metrics.kv_cache_usage_perc=-4, named_metrics.num_requests_waiting=1e30',
    'TEXT named_metrics.num_requests_waiting=1, named_metrics.kv_cache_usage_perc=1e30',
    'TEXT named_metrics.kv_cache_usage_perc',
    'TEXT named_metrics.kv_cache_usage_perc=0.5 0.6',
    'TEXT eps=1,eps=1',
    'TEXT eps=1,',
    'TEXT =1',
    'TEXT',
    '',
    'JSON {"named_metrics":{"kv_cache_usage_perc":"0.93"}}',
    'JSON {"eps":1',
    'JSON {"eps":1}}',
    'JSON [1]',
    `JSON ${'{"a":'.repeat(9)}1${'}'.repeat(9)}`,
    'BIN CAFE==',
    'BIN',
    'BIN !',
    `TEXT eps=1${',x=1'.repeat(2000)}`,
  ])('are left out as a whole, and counted, when they make no sense: %s', (value) => {
    expect(loadOf([[TEXT, value]])).toEqual({ reports: 0, garbled: 1 });
  });

  it('of more replicas than a report tells of are told in turns, a turn with each report that arrives', () => {
    const vm = new Host(module).startVm();
    deliver(vm, sketch(Array.from({ length: 13 }, () => ({ weight: 1, replicas: 100 }))));
    const served = new Set<string>();
    for (let i = 0; i < 10_000; i++) {
      const stream = vm.request({ 'x-session-id': `k${i}` });
      served.add(stream.endpoints[0]!);
      stream.respond(200, { headers: [[TEXT, 'TEXT rps_fractional=7.5']] }).end();
    }
    const replicas = served.size;
    const tell = () => {
      // However often it is written before it is sent.
      for (let tick = 0; tick < 3; tick++) vm.tick();
      vm.host.nowMs += 100;
      vm.answer(304);
      const { loads } = decodeUsageReport(vm.call!.body).vms[0]!;
      expect(loads.length).toBe(MOST_LOADS_TOLD);
      for (const { reports, sums, counts } of loads) {
        expect(sums).toEqual(counts.map((count) => 7.5 * count));
        expect(Math.max(...counts)).toBe(reports);
      }
      return loads.map(({ replica }) => replica);
    };
    for (let round = 0; round < 3; round++) {
      const first = new Set(tell());
      const second = tell();
      expect(second.slice(0, replicas - MOST_LOADS_TOLD).filter((replica) => first.has(replica))).toEqual([]);
      expect(new Set([...first, ...second]).size).toBe(replicas);
    }
  });

  it('are counted from zero again after some thousands', () => {
    const vm = started();
    const answer = () =>
      ask(vm)
        .respond(200, { headers: [[TEXT, 'TEXT eps=0.1']] })
        .end();
    for (let i = 0; i < 4_096; i++) answer();
    expect(reportOf(vm).loads).toMatchObject([{ reports: 4_096 }]);
    answer();
    expect(reportOf(vm).loads).toMatchObject([
      { reports: 1, sums: expect.arrayContaining([expect.closeTo(0.1)]) },
    ]);
  });

  it('never trap the filter, whatever they are', () => {
    const vm = started();
    const word = fc.constantFrom(
      'TEXT ',
      'JSON ',
      'BIN ',
      '',
      'named_metrics.',
      'eps',
      '=',
      ':',
      ',',
      '{',
      '}',
      '"',
      '1',
      '.',
      'e',
      '-',
      ' ',
    );
    const texts = fc.oneof(
      fc.array(word, { maxLength: 30 }).map((parts) => parts.join('')),
      fc.string({ maxLength: 60 }),
    );
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.tuple(fc.nat(report.length - 1), fc.nat(255)).map(([at, value]) => {
        const spoiled = Buffer.from(report);
        spoiled[at] = value;
        return spoiled;
      }),
    );
    let sent = 0;
    fc.assert(
      fc.property(texts, bytes, (text, spoiled) => {
        const headers: Headers = [
          [TEXT, text],
          [BINARY, Buffer.from(spoiled).toString('base64')],
        ];
        ask(vm).respond(200, { headers }).end();
        sent += 2;
      }),
      { numRuns: 2000 },
    );
    const [load] = reportOf(vm).loads;
    expect(load!.reports + load!.garbled).toBe(sent);
    for (const [at, name] of LOAD_NAMES.entries()) {
      const most = name === 'kvUse' ? 1 : name === 'utilization' ? 100 : 1e9;
      expect(load!.sums[at]!).toBeLessThanOrEqual(load!.counts[at]! * most);
    }
  });
});

it('every statistic is documented', () => {
  const docs = readFileSync(new URL('../../docs/filter.md', import.meta.url), 'utf8');
  const listed = docs.slice(docs.indexOf('## Statistics'), docs.indexOf('## Limits'));
  const names = [...started().host.metrics.keys()].map((name) => name.replace(/^wardrop_(requests_)?/, ''));
  expect(names.length).toBeGreaterThan(30);
  expect(names.filter((name) => !new RegExp(`[{,\\s\`_]${name}[},\`]`).test(listed))).toEqual([]);
});
