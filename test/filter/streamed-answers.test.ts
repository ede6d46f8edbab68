import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Vm } from '../../simulator/filter-host/host.js';
import { id64 } from '../../wire/hash.js';
import { FIRST_TOKEN_BOUNDS, PACE_BOUNDS } from '../../wire/usage-report.js';
import { ask, engineOf, event, SSE, started, token, usage } from './observed.js';
import { reportOf } from './reported.js';

/** How the names of events end that come before the first token. */
const PRELUDE = /(created|progress|_start|ping|\.failed)$/;
/** And those of events that say that the answer has failed. */
const FAILURE = /(error|e\.failed)$/;
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

  const requestsErrors = [
    event({ error: { message: 'InternalServerError', type: 'BadRequestError', code: 400 } }),
    event('{ "error" : "input is too long", "error_type": "validation" }'),
    event({ error: { message: '"code": 500', param: { code: 500 } } }),
    named('error', { error: { type: 'overloaded_error' } }),
    named('response.failed', { response: { error: { code: 'invalid_prompt' }, code: 'server_error' } }),
    'event: error\ndata: it did not work\n\n',
  ];
  const enginesErrors = [
    event({ error: { message: 'EngineCore encountered an issue', type: 'InternalServerError', code: 500 } }),
    event({ error: { message: 'x', type: 'BadRequestError', code: 400 } }) +
      event({ error: { code: '503' } }),
    event(
      '{ "error" : {"message": "\\"code\\": 400}", "param": {"a": [1]}, "type" : "server_error", "code": null} }',
    ),
    named('response.created') + named('response.failed', { response: { error: { code: 'server_error' } } }),
    named('message_start') + event({ type: 'error', error: { type: 'api_error' } }),
    named('error', { code: 'internal_error', message: 'x' }),
    'event: error\ndata: {"detail": {"error": {"status": 500}}}\n\n',
    event({ error: { message: 'x'.repeat(900), code: 500 } }),
  ];

  it.each([
    ...requestsErrors.map((error) => [error, 0] as const),
    ...enginesErrors.map((error) => [error, 1] as const),
  ])(
    'that is an error has no first token, and speaks against its replica only with the status of a failure, case %#',
    (error, failures) => {
      const bytes = Buffer.from(error + event('[DONE]'));
      for (const pieces of [1, 2, 3, 7, 16, 17, 1_000]) {
        const vm = started();
        const failed = () => {
          const stream = ask(vm).respond(200, { headers: SSE });
          const size = Math.ceil(bytes.length / pieces);
          for (let at = 0; at < bytes.length; at += size) stream.responseBody(bytes.subarray(at, at + size));
          stream.responseBody('', true).end();
        };
        for (let i = 0; i < 5; i++) failed();
        expect(engineOf(vm)).toMatchObject({
          ...{ firstTokenCount: 0, paceTokens: 0, ended: 5 },
          ...{ failures: 5 * failures, broken: 5 * failures },
        });
      }
    },
  );

  it.each(enginesErrors)(
    'that ends in an error of the engine has failed, whatever came before, case %#',
    (error) => {
      const vm = started();
      for (const ending of ['', ': bye\n\n', event('[DONE]')]) {
        ask(vm)
          .respond(200, { headers: SSE })
          .responseBody(token.repeat(50) + error + ending, true)
          .end();
      }
      expect(engineOf(vm)).toMatchObject({ firstTokenCount: 3, paceTokens: 0, failures: 3, broken: 3 });
    },
  );

  // As an event does that has the request with all its tools in it.
  const long = { error: { code: 'server_error' }, tools: 'x'.repeat(3_000) };
  it.each([
    ['told by a line', named('response.failed', { response: long })],
    ['told first', event({ type: 'response.failed', response: long })],
    [
      'told last, as vLLM does',
      `event: response.failed\n${event({ response: long, type: 'response.failed' })}`,
    ],
  ])('that ends in an error longer than what is kept of it has failed, its name %s', (_, error) => {
    for (const ending of ['', event('[DONE]'), ': bye\n\n']) {
      const vm = started();
      ask(vm)
        .respond(200, { headers: SSE })
        .responseBody(token.repeat(50))
        .responseBody(error)
        .responseBody(ending, true)
        .end();
      expect(engineOf(vm)).toMatchObject({ paceTokens: 0, failures: 1, broken: 1 });
    }
  });

  it('that ends in an error that comes in pieces, its name at its end, is no answer of any length', () => {
    const vm = started();
    const stream = ask(vm).respond(200, { headers: SSE }).responseBody(token.repeat(50));
    const error = event({ response: long, type: 'response.failed' });
    for (let at = 0; at < error.length; at += 500) stream.responseBody(error.slice(at, at + 500));
    stream.responseBody('', true).end();
    expect(engineOf(vm)).toMatchObject({ firstTokenCount: 1, paceTokens: 0, failures: 0, broken: 0 });
  });

  it('has not failed where a long event that was no error, or an error with a token behind it, came before its end', () => {
    const vm = started();
    for (const end of [
      named('response.completed', { response: { ...long, error: null } }),
      named('response.failed', { response: long }) + token,
      event({ choices: [{ delta: { content: `${'x'.repeat(2_000)}"response.failed"}` } }] }),
      'x'.repeat(2_000),
    ]) {
      ask(vm).respond(200, { headers: SSE }).responseBody(token).responseBody(end, true).end();
    }
    expect(engineOf(vm)).toMatchObject({ failures: 0, broken: 0, ended: 4, firstTokenCount: 4 });
  });

  it('has not failed where what looks like an error is none, or is followed by more', () => {
    const vm = started();
    const error = event({ error: { code: 500 } });
    for (const end of [
      error + token,
      event({ choices: [{ delta: { content: error } }] }),
      event({ choices: [{ error: { code: 500 } }] }),
      event('{"error": null, "code": 500}'),
      event({ type: 'response.completed', response: { output: [{ error: { code: 500 } }] } }),
      event('{"error":{"code":500'.slice(0, 8)),
      event(''),
      'data: {"type":"error',
    ]) {
      ask(vm)
        .respond(200, { headers: SSE })
        .responseBody(token + end, true)
        .end();
    }
    expect(engineOf(vm)).toMatchObject({ failures: 0, broken: 0, ended: 8 });
  });

  it('that is an error says nothing of how long answers are', () => {
    const vm = started();
    ask(vm)
      .respond(200, { headers: SSE })
      .responseBody(token.repeat(5) + event('[DONE]'), true)
      .end();
    for (const begun of ['message_start', 'response.created']) {
      ask(vm)
        .respond(200, { headers: SSE })
        .responseBody(named(begun, { message: usage(9, 1) }) + named('ping') + named('error'), true)
        .end();
    }
    expect(reportOf(vm).pools[0]).toMatchObject({ promptCount: 2, outputCount: 1, outputTokens: 4 });
  });

  it('that is an error ends no row of failures', () => {
    const home = (vm: Vm) => ask(vm).endpoints[0];
    const vm = started([{ weight: 1 }, { weight: 1 }]);
    const first = home(vm);
    for (let i = 0; i < 3; i++) {
      ask(vm).respond(500).end();
      ask(vm)
        .respond(200, { headers: SSE })
        .responseBody(event({ error: { code: 400 } }) + event('[DONE]'), true)
        .end();
    }
    expect(home(vm)).not.toBe(first);
  });

  it.each(['response.mcp_list_tools.failed', 'response.mcp_call.failed'])(
    'in which a tool has failed (%s) comes to its first token all the same',
    (name) => {
      for (const failed of [named(name), event({ type: name })]) {
        const vm = started();
        const stream = ask(vm)
          .respond(200, { headers: SSE })
          .responseBody(named('response.created') + failed);
        expect(engineOf(vm)).toMatchObject({ firstTokenCount: 0 });
        stream.responseBody(named('response.output_text.delta')).end();
        expect(engineOf(vm)).toMatchObject({ firstTokenCount: 1 });
      }
    },
  );

  it('that holds an error that is none has its first token', () => {
    const vm = started();
    ask(vm).respond(200, { headers: SSE }).responseBody(event('{"error":null,"choices":[]}'), true).end();
    expect(engineOf(vm)).toMatchObject({ firstTokenCount: 1 });
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
      'error',
      'response.failed',
      'response.mcp_call.failed',
    );
    const space = fc.constantFrom('', ' ', '  ');
    const line = fc.oneof(
      fc.constantFrom('', '', ':', ': data: x', 'id: 7', 'retry: 10', 'data:', 'data: ', 'x', 'data', 'dat'),
      name.map((each) => `event: ${each}`),
      fc
        .tuple(name, space, space, space, space)
        .map(([each, a, b, c, d]) => `data:${a}{${b}"type"${c}:${d}"${each}","x":1}`),
      fc
        .tuple(fc.constantFrom('{"code":500}', '"x"', 'null', '{'), space, space, space, space)
        .map(([each, a, b, c, d]) => `data:${a}{${b}"error"${c}:${d}${each}}`),
      fc.constantFrom(
        'data: {"x":1}',
        'data:[DONE]',
        'data: event: ping',
        `data: ${'x'.repeat(300)}`,
        'data: {"type',
        'data: {"errors":[]}',
        'data: {"error":',
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
        const reported = (starts: readonly number[]) => {
          const vm = started();
          const answer = ask(vm).respond(200, { headers: SSE });
          for (const [index, start] of starts.entries()) {
            answer.responseBody(body.subarray(start, starts[index + 1]));
            vm.host.nowMs += 1000;
          }
          answer.responseBody('', true).end();
          return reportOf(vm);
        };
        const { firstToken, events } = read(body.toString('latin1'));
        const seconds = cuts.filter((cut) => cut < firstToken).length;
        const { pools, engines } = reported([0, ...cuts]);
        expect(engines[0]).toMatchObject(
          firstToken > body.length
            ? { firstTokenCount: 0 }
            : { firstTokenCount: 1, firstTokenSecondsSum: expect.closeTo(seconds, 6) },
        );
        const { outputTokens } = pools[0]!;
        expect(outputTokens).toBe(reported([0]).pools[0]!.outputTokens);
        // One that tells an error has no tokens, or is taken to have one an event where more follows.
        if (/error|failed/.test(String(body))) expect([0, Math.max(0, events - 2)]).toContain(outputTokens);
        else expect(outputTokens).toBe(Math.max(0, events - 2));
      }),
      { numRuns: 400 },
    );

    /** How many bytes of a stream have come when its first token shows, and how many events end in it. */
    function read(body: string): { firstToken: number; events: number } {
      let firstToken = Number.POSITIVE_INFINITY;
      let events = 0;
      let isPrelude = false;
      let isOpen = false;
      let hasFailed = false;
      for (const found of body.matchAll(/(?:^\xef\xbb\xbf)?([^\r\n]*)(\r\n|\r|\n|$)/g)) {
        const [all, content, end] = [found[0], found[1]!, found[2]!];
        const start = found.index + all.length - content.length - end.length;
        if (content.startsWith('data:') && !isPrelude && !hasFailed) {
          const shown = shownAt(content.slice(5), end !== '');
          if (shown === 'failure') hasFailed = true;
          else if (shown === 'prelude') isPrelude = true;
          else if (shown !== undefined) firstToken = Math.min(firstToken, start + 5 + shown);
        }
        if (end === '') break;
        if (content.startsWith('event:')) {
          isPrelude = PRELUDE.test(content);
          hasFailed ||= FAILURE.test(content);
        }
        if (content === '') {
          isPrelude = false;
          if (isOpen) events++;
          isOpen = false;
        } else if (!content.startsWith(':')) isOpen = true;
      }
      return { firstToken, events };
    }

    /** How many bytes of data have come when they show a token, if they do; 'prelude' or 'failure' if they show that they are none. */
    function shownAt(data: string, isWhole: boolean): number | 'prelude' | 'failure' | undefined {
      const start = /^ *(\{ *("(t(y(p(e(" *(: *("[^"]*)?)?)?)?)?)?|e(r(r(o(r(" *(: *)?)?)?)?)?)?)?)?)?/.exec(
        data,
      )![0];
      const { length } = start;
      if (length > LOOKED_AT) return LOOKED_AT + 1;
      if (length < data.length) {
        if (/"error" *: *$/.test(start) && /["{]/.test(data[length]!)) return 'failure';
        const isName = data[length] === '"' && /"type" *: *"/.test(start);
        if (isName && FAILURE.test(start)) return 'failure';
        return isName && PRELUDE.test(start) ? 'prelude' : length + 1;
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
