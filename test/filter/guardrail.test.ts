import { describe, expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { type Headers, Host, type Stream, type Vm } from '../../simulator/filter-host/host.js';
import { deliver, type EngineSketch, engineOf, sketch } from './snapshots.js';

const module = filterModule();
const OWNER = '10.0.0.0:8000';
const BACKUP = '10.0.1.0:8000';

function started(view = sketch([{ weight: 1 }, { weight: 0 }])): Vm {
  const vm = new Host(module).startVm();
  deliver(vm, view);
  return vm;
}

function request(vm: Vm) {
  return vm.request({ 'x-session-id': 'a' });
}

function fail(vm: Vm, times = 1): void {
  for (let i = 0; i < times; i++) request(vm).respond(503).end();
}

/** Lets time pass, tick by tick. */
function wait(vm: Vm, ms: number): void {
  for (let left = ms; left > 0; left -= 100) {
    vm.host.nowMs += Math.min(left, 100);
    vm.tick();
  }
}

describe('the guardrail', () => {
  it('ejects after three failures in a row, not after three in all', () => {
    const vm = started();
    fail(vm, 2);
    request(vm).respond(200).end();
    fail(vm, 2);
    expect(request(vm).endpoints[0]).toBe(OWNER);
    fail(vm);
    expect(request(vm).endpoints[0]).toBe(BACKUP);
  });

  // Engines list their models, and say that they are well, also when they cannot serve.
  it.each([
    ['GET', '/v1/models'],
    ['HEAD', '/'],
    ['OPTIONS', '/v1/chat/completions'],
  ])('is not told by the answer to %s %s that an engine serves', (method, path) => {
    const ask = (vm: Vm) =>
      vm
        .request({ 'x-session-id': 'a', ':method': method, ':path': path }, { ended: true })
        .respond(200)
        .end();
    const failing = started();
    for (let i = 0; i < 3; i++) {
      fail(failing);
      ask(failing);
    }
    expect(request(failing).endpoints[0]).toBe(BACKUP);

    const newcomer = started(sketch([{ weight: 1 }]));
    deliver(newcomer, sketch([{ weight: 0 }, { weight: 1 }], { version: 2 }));
    for (let i = 0; i < 4; i++) ask(newcomer);
    const seen = Array.from({ length: 5 }, () => request(newcomer).endpoints[0]);
    expect(seen).toEqual([BACKUP, BACKUP, BACKUP, BACKUP, OWNER]);
  });

  it('holds it against nobody that lists of models failed once in a while, where they are answered in between', () => {
    const vm = started();
    const list = (status: number) =>
      vm
        .request({ 'x-session-id': 'a', ':method': 'GET', ':path': '/v1/models' }, { ended: true })
        .respond(status)
        .end();
    for (let i = 0; i < 3; i++) {
      list(503);
      list(200);
    }
    expect(request(vm).endpoints[0]).toBe(OWNER);
    // What a success has made good already is not taken off once more.
    list(503);
    request(vm).respond(200).end();
    fail(vm, 2);
    list(200);
    expect(request(vm).endpoints[0]).toBe(OWNER);
    list(503);
    expect(request(vm).endpoints[0]).toBe(BACKUP);
  });

  it('is told by a WebSocket that an engine serves', () => {
    const vm = started();
    for (let i = 0; i < 3; i++) {
      fail(vm);
      vm.request({ 'x-session-id': 'a', ':method': 'GET', upgrade: 'websocket' }).respond(101);
    }
    expect(request(vm).endpoints[0]).toBe(OWNER);
  });

  // Envoy has no other name for the end of a WebSocket that the engine closes, in order or not.
  it.each(['upstream_reset_after_response_started{connection_termination}', 'upstream_per_try_idle_timeout'])(
    'holds it against nobody that WebSockets are closed: %s',
    (details) => {
      const vm = started();
      const sockets = Array.from({ length: 4 }, () =>
        vm.request({ 'x-session-id': 'a', ':method': 'GET', upgrade: 'websocket' }).respond(101),
      );
      for (const socket of sockets) socket.end(details);
      vm.tick();
      expect(request(vm).endpoints[0]).toBe(OWNER);
      expect(vm.host.metrics.get('wardrop_answers_broken')).toBe(0);
    },
  );

  it('counts the attempts that Envoy retried', () => {
    const vm = started();
    for (let i = 0; i < 3; i++) {
      const stream = request(vm).respond(200, { attempts: 2 });
      expect(stream.decision.engine).toBe('e1');
      expect(stream.decision.reason).toBe('retry');
      stream.end();
    }
    expect(request(vm).endpoints[0]).toBe(BACKUP);
  });

  it('blames entries that Envoy skipped because it does not know them', () => {
    const vm = new Host(module).startVm();
    deliver(vm, sketch([{ weight: 1, replicas: 2 }, { weight: 0 }]));
    const [first, skipped, last] = request(vm).endpoints;
    for (let i = 0; i < 3; i++) request(vm).respond(200, { attempts: 2, address: last! }).end();
    expect([first, skipped]).not.toContain(request(vm).endpoints[0]);
  });

  it('blames all entries when Envoy knows none of them', () => {
    const vm = started();
    for (let i = 0; i < 3; i++) request(vm).respond(503, { details: 'no_healthy_upstream' }).end();
    expect(request(vm).respond(503).decision.reason).toBe('floor');
  });

  it.each([
    ['upstream_reset_before_response_started{connection_termination}', true],
    ['upstream_per_try_timeout', true],
    ['response_timeout', true],
    ['upstream_reset_before_response_started{overflow}', false],
    ['ext_authz_denied', false],
    ['stream_idle_timeout', false],
  ])('takes an error with the details %s as a failure of the engine: %s', (details, blamed) => {
    const vm = started();
    for (let i = 0; i < 3; i++) request(vm).respond(503, { details }).end();
    expect(request(vm).endpoints[0]).toBe(blamed ? BACKUP : OWNER);
  });

  it('takes client errors that Envoy answers itself as nothing', () => {
    for (const details of ['route_not_found', 'request_payload_too_large']) {
      const vm = started();
      fail(vm, 2);
      request(vm).respond(404, { details }).end();
      fail(vm);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    }
  });

  it('takes client errors as successes and a client that leaves as nothing', () => {
    const vm = started();
    fail(vm, 2);
    request(vm).end();
    request(vm).respond(404).end();
    fail(vm, 2);
    expect(request(vm).endpoints[0]).toBe(OWNER);
  });

  describe('of an engine that fails after its answers have begun', () => {
    const SSE: Headers = [['content-type', 'text/event-stream']];
    const RESET = 'upstream_reset_after_response_started{connection_termination}';
    const begun = (vm: Vm) => request(vm).respond(200, { headers: SSE }).responseBody('data: token\n\n');
    const breakOff = (vm: Vm, times = 1) => {
      for (let i = 0; i < times; i++) begun(vm).end(RESET);
    };
    const error = `data: ${JSON.stringify({ error: { code: 500 } })}\n\ndata: [DONE]\n\n`;

    it.each<[string, (vm: Vm) => void]>([
      ['breaks off each stream behind its first tokens', (vm) => breakOff(vm)],
      [
        'breaks off each answer in one piece',
        (vm) => request(vm).respond(200).responseBody('{"id').end(RESET),
      ],
      ['ends each stream with an error of its own', (vm) => begun(vm).responseBody(error, true).end()],
      [
        'tells such errors in place of tokens',
        (vm) => request(vm).respond(200, { headers: SSE }).responseBody(error, true).end(),
      ],
      ['falls silent behind the first tokens', (vm) => begun(vm).end('upstream_per_try_idle_timeout')],
    ])('ejects one that %s', (_, failOnce) => {
      const vm = started();
      for (let i = 0; i < 3; i++) {
        expect(request(vm).endpoints[0]).toBe(OWNER);
        failOnce(vm);
      }
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    });

    it('ejects nobody for clients that leave, and no row of failures ends with them', () => {
      const vm = started();
      for (let i = 0; i < 20; i++) {
        begun(vm).end('downstream_remote_disconnect');
        request(vm).end('downstream_remote_disconnect');
      }
      expect(request(vm).endpoints[0]).toBe(OWNER);
      breakOff(vm, 2);
      begun(vm).end('downstream_remote_disconnect');
      breakOff(vm);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    });

    it('ejects nobody that breaks off some while others of its answers come to a good end', () => {
      const vm = started();
      for (let i = 0; i < 10; i++) {
        breakOff(vm, 2);
        begun(vm).responseBody('data: [DONE]\n\n', true).end();
      }
      expect(request(vm).endpoints[0]).toBe(OWNER);
    });

    it('counts a failure once whose answer breaks off', () => {
      const vm = started();
      for (let i = 0; i < 2; i++) request(vm).respond(500).end(RESET);
      expect(request(vm).endpoints[0]).toBe(OWNER);
    });

    it('ends no row of failures with the good end of an answer that began before', () => {
      const vm = started();
      const old = begun(vm);
      fail(vm, 2);
      old.responseBody('data: [DONE]\n\n', true).end();
      fail(vm);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    });

    it('tests it with whole answers: one that has only begun passes nothing and keeps its place', () => {
      const vm = started();
      breakOff(vm, 3);
      wait(vm, 1100);
      const test = begun(vm);
      expect(test.endpoints[0]).toBe(OWNER);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
      test.end(RESET);
      wait(vm, 1900);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
      wait(vm, 200);
      for (const admitted of [1, 2, 4]) {
        const tests = Array.from({ length: admitted }, () => begun(vm));
        for (const each of tests) expect(each.endpoints[0]).toBe(OWNER);
        expect(request(vm).endpoints[0]).toBe(BACKUP);
        tests.shift()!.responseBody('data: [DONE]\n\n', true).end();
        for (const each of tests) each.end('downstream_remote_disconnect');
      }
      const many = Array.from({ length: 20 }, () => begun(vm).endpoints[0]);
      expect(new Set(many)).toEqual(new Set([OWNER]));
      // And is then judged as any other.
      fail(vm, 2);
      begun(vm);
      fail(vm, 2);
      expect(request(vm).endpoints[0]).toBe(OWNER);
    });

    it('widens the test every 2 s, so that long answers keep nobody out who is well again', () => {
      const vm = started();
      breakOff(vm, 3);
      wait(vm, 1100);
      let admitted = 0;
      const admit = () => {
        for (let i = 0; i < 20; i++) if (begun(vm).endpoints[0] === OWNER) admitted++;
        return admitted;
      };
      expect(admit()).toBe(1);
      for (const most of [2, 4, 8, 16]) {
        wait(vm, 2000);
        expect(admit()).toBe(most);
      }
    });

    it('widens no test that nobody makes: what comes up after minutes is tried with one request first', () => {
      const vm = started(sketch([{ weight: 1 }, { weight: 0 }], { version: 1 }));
      breakOff(vm, 3);
      deliver(vm, sketch([{ weight: 1, ready: false }, { weight: 0 }], { version: 2 }));
      wait(vm, 120_000);
      deliver(vm, sketch([{ weight: 1 }, { weight: 0 }], { version: 3 }));
      const seen = Array.from({ length: 20 }, () => begun(vm).endpoints[0]);
      expect(seen.filter((endpoint) => endpoint === OWNER)).toHaveLength(1);
    });

    it('sends it no more than its test while it breaks off all', () => {
      const vm = started();
      let lost = 0;
      for (let i = 0; i < 600; i++) {
        const stream = begun(vm);
        const isLost = stream.endpoints[0] === OWNER;
        if (isLost) lost++;
        stream.responseBody('', !isLost).end(isLost ? RESET : undefined);
        wait(vm, 200);
      }
      expect(lost).toBeLessThanOrEqual(3 + 7);
    });
  });

  it('takes a stream for a success once it has its first token, or ends well without any', () => {
    const headers: Headers = [['content-type', 'text/event-stream']];
    const beginnings: ((stream: Stream) => void)[] = [
      (stream) => stream.responseBody(': ping\n\ndata: token\n\n'),
      (stream) => stream.responseBody(': ping\n\n', true),
    ];
    for (const begin of beginnings) {
      const vm = started();
      fail(vm, 2);
      begin(request(vm).respond(200, { headers }));
      fail(vm, 2);
      expect(request(vm).endpoints[0]).toBe(OWNER);
      request(vm).respond(200, { headers }).responseBody(': ping\n\n');
      fail(vm);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    }
  });

  it('tests an ejected engine with 1, 2, then 4 requests at a time and takes it back after 3 successes', () => {
    const vm = started();
    fail(vm, 3);
    wait(vm, 900);
    expect(request(vm).endpoints[0]).toBe(BACKUP);
    wait(vm, 200);
    for (const admitted of [1, 2, 4]) {
      const tests = Array.from({ length: admitted }, () => request(vm));
      for (const test of tests) expect(test.endpoints[0]).toBe(OWNER);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
      tests.shift()!.respond(200).end();
      for (const test of tests) test.end();
    }
    const many = Array.from({ length: 20 }, () => request(vm).endpoints[0]);
    expect(new Set(many)).toEqual(new Set([OWNER]));
  });

  it('doubles the back-off up to 30 s while tests fail', () => {
    const vm = started();
    fail(vm, 3);
    for (const seconds of [1, 2, 4, 8, 16, 30, 30]) {
      wait(vm, seconds * 1000 - 100);
      expect(request(vm).endpoints[0]).toBe(BACKUP);
      wait(vm, 200);
      const test = request(vm);
      expect(test.endpoints[0]).toBe(OWNER);
      test.respond(503).end();
      expect(request(vm).endpoints[0]).toBe(BACKUP);
    }
  });

  it('frees the place of a test that ends without an answer', () => {
    const vm = started();
    fail(vm, 3);
    wait(vm, 1100);
    request(vm).end();
    expect(request(vm).endpoints[0]).toBe(OWNER);
  });

  it('does not let requests from before a change of state count after it', () => {
    const vm = started();
    const old = Array.from({ length: 10 }, () => request(vm));
    vm.host.nowMs += 1;
    fail(vm, 3);
    wait(vm, 1100);
    for (const stream of old) stream.respond(503).end();
    expect(request(vm).endpoints[0]).toBe(OWNER);
  });

  it('sends a retry to one that is ejected where there is nobody else, and nothing else', () => {
    const vm = started(sketch([{ weight: 1, replicas: 2 }]));
    const home = request(vm).endpoints[0]!;
    for (let i = 0; i < 3; i++) {
      // Of each request only the first attempt fails.
      const stream = request(vm);
      if (stream.endpoints[0] === home) stream.respond(503).end();
    }
    const { endpoints } = request(vm);
    expect(endpoints[0]).not.toBe(home);
    expect(endpoints.slice(1)).toEqual([home]);
  });

  it('sends a retry to an ejected engine only where nobody of the pool is left', () => {
    const vm = started();
    fail(vm, 3);
    expect(request(vm).endpoints).toEqual([BACKUP, OWNER]);
    const three = started(sketch([{ weight: 1 }, { weight: 0 }, { weight: 0 }]));
    fail(three, 3);
    expect(request(three).endpoints).not.toContain(OWNER);
  });

  it('ejects an engine after five failures in a row on whichever replicas', () => {
    const vm = new Host(module).startVm();
    deliver(vm, sketch([{ weight: 1, replicas: 50 }, { weight: 0 }]));
    const failures: string[] = [];
    for (let i = 0; failures.length < 5; i++) {
      const stream = vm.request({ 'x-session-id': `k${i}` });
      if (failures.includes(stream.endpoints[0]!)) continue;
      failures.push(stream.endpoints[0]!);
      stream.respond(503).end();
    }
    for (let i = 0; i < 50; i++) expect(vm.request({ 'x-session-id': `n${i}` }).endpoints[0]).toBe(BACKUP);
  });

  it('is not fooled by a clock that is set back', () => {
    const vm = started();
    fail(vm, 3);
    vm.host.nowMs -= 3_600_000;
    wait(vm, 1100);
    const test = request(vm);
    expect(test.endpoints[0]).toBe(OWNER);
    test.respond(200).end();
    expect([request(vm), request(vm)].map((stream) => stream.endpoints[0])).toEqual([OWNER, OWNER]);
  });

  describe('of a replica that has come up', () => {
    const before = [{ weight: 1 }];
    const after = [{ weight: 0 }, { weight: 1 }];
    const ups: Record<string, [EngineSketch[], EngineSketch[]]> = {
      'in an engine that is new': [before, after],
      'where it was down': [[{ weight: 0 }, { weight: 1, ready: false }], after],
      'while nobody else is left to compare it with': [before, [{ weight: 0, ready: false }, { weight: 1 }]],
    };

    it.each(Object.entries(ups))('lets it have four requests until one is answered: %s', (_, [was, is]) => {
      const vm = started(sketch(was));
      deliver(vm, sketch(is, { version: 2 }));
      const tests = Array.from({ length: 4 }, () => request(vm));
      for (const test of tests) expect(test.endpoints[0]).toBe(BACKUP);
      const [home, reason] = is[0]!.ready === false ? [BACKUP, 'floor'] : [OWNER, 'guardrail'];
      const next = request(vm);
      expect(next.endpoints[0]).toBe(home);
      expect(next.respond(200).decision.reason).toBe(reason);
      tests[0]!.respond(200).end();
      const many = Array.from({ length: 20 }, () => request(vm).endpoints[0]);
      expect(new Set(many)).toEqual(new Set([BACKUP]));
    });

    it('leaves it out at once when its first request fails', () => {
      const vm = started(sketch(before));
      deliver(vm, sketch(after, { version: 2 }));
      fail(vm);
      expect(request(vm).endpoints[0]).toBe(OWNER);
    });

    it('sends retries there before it has answered only if there is nobody else', () => {
      const vm = started(sketch([{ weight: 1 }, { weight: 0 }]));
      deliver(vm, sketch([{ weight: 1, replicas: 2 }, { weight: 0 }], { version: 2 }));
      for (let i = 0; i < 20; i++) {
        const { endpoints } = vm.request({ 'x-session-id': `k${i}` });
        expect(endpoints.slice(1)).not.toContain('10.0.0.1:8000');
      }
      const all = started(sketch([{ weight: 1 }]));
      deliver(
        all,
        sketch([{ weight: 0, ready: false }, { weight: 1, replicas: 2 }, { weight: 0 }], { version: 2 }),
      );
      const { endpoints } = request(all);
      expect(endpoints.map(engineOf)).toEqual([1, 1, 2]);
      expect(new Set(endpoints).size).toBe(3);
    });

    it('lists three endpoints at most, nobody twice, also where all replicas of two engines are new', () => {
      const withReplicas = (first: number, version: number) => {
        const view = sketch(
          [
            { weight: 1, replicas: first + 2 },
            { weight: 1, replicas: first + 2 },
          ],
          { version },
        );
        return {
          ...view,
          engines: view.engines.map((each) => ({ ...each, replicas: each.replicas.slice(-2) })),
        };
      };
      const vm = started(withReplicas(0, 1));
      deliver(vm, withReplicas(2, 2));
      for (let i = 0; i < 100; i++) {
        const { endpoints, retries } = vm.request({ 'x-session-id': `k${i}` });
        expect(endpoints.length).toBeLessThanOrEqual(3);
        expect(endpoints).toHaveLength(retries + 1);
        expect(new Set(endpoints).size).toBe(endpoints.length);
        for (const endpoint of endpoints) expect(endpoint).toMatch(/^10\.0\.[01]\.[23]:8000$/);
      }
    });

    it('widens the test every 2 s while none has failed, so that long answers leave nobody with the load of those replaced', () => {
      const vm = started(sketch([{ weight: 1 }]));
      deliver(vm, sketch([{ weight: 1, replicas: 5 }], { version: 2 }));
      const firstOf = (count: number, name: string) =>
        Array.from({ length: count }, (_, i) => vm.request({ 'x-session-id': `${name}${i}` }));
      const oldPart = (streams: Stream[]) => streams.filter(({ endpoints }) => endpoints[0] === OWNER).length;
      expect(oldPart(firstOf(60, 'a'))).toBe(60 - 4 * 4);
      wait(vm, 1900);
      expect(oldPart(firstOf(60, 'b'))).toBe(60);
      for (const more of [4, 8, 16]) {
        wait(vm, more === 4 ? 200 : 2000);
        expect(oldPart(firstOf(200, `${more}`))).toBe(200 - 4 * more);
      }
    });

    it('takes more there before anybody is refused for want of room', () => {
      const limits = [1, 20];
      const view = (ready: boolean) =>
        limits.map((replicaLimit, at) => ({ weight: 1 - at, replicaLimit, ready: at === 0 || ready }));
      const vm = started(sketch(view(false)));
      deliver(vm, sketch(view(true), { version: 2 }));
      const streams = Array.from({ length: 23 }, () => request(vm));
      expect(streams.filter(({ endpoints }) => endpoints[0] === OWNER)).toHaveLength(1);
      expect(streams.filter(({ endpoints }) => endpoints[0] === BACKUP)).toHaveLength(20);
      expect(streams.filter(({ reply }) => reply?.body.includes('overloaded'))).toHaveLength(2);
    });

    it('takes more there before one that is ejected is tried', () => {
      const vm = started(sketch([{ weight: 1 }, { weight: 0, ready: false }]));
      fail(vm, 3);
      deliver(vm, sketch([{ weight: 1 }, { weight: 0 }], { version: 2 }));
      const many = Array.from({ length: 20 }, () => request(vm).endpoints[0]);
      expect(new Set(many)).toEqual(new Set([BACKUP]));
    });

    it('spares it nothing where less than half of those that shared the load are left', () => {
      const fiveFrom = (first: number, version: number) => {
        const view = sketch([{ weight: 1, replicas: first + 5 }, { weight: 0 }], { version });
        const engines = view.engines.map(({ replicas, ...rest }) => ({
          ...rest,
          replicas: replicas.slice(-5),
        }));
        return { ...view, engines };
      };
      const most = (replaced: number) => {
        const vm = started(fiveFrom(0, 1));
        // One after the other, as in a rolling update.
        for (let i = 1; i <= replaced; i++) deliver(vm, fiveFrom(i, 1 + i));
        const at = new Map<string, number>();
        for (let i = 0; i < 200; i++) {
          const endpoint = vm.request({ 'x-session-id': `k${i}` }).endpoints[0]!;
          at.set(endpoint, (at.get(endpoint) ?? 0) + 1);
        }
        expect([...at.keys()].map(engineOf)).toEqual(Array(5).fill(0));
        return Math.max(...at.values());
      };
      expect(most(2)).toBeGreaterThanOrEqual((200 - 2 * 4) / 3);
      expect(most(2)).toBeLessThan(100);
      for (const replaced of [3, 4, 5]) expect(most(replaced)).toBeLessThan(64);
    });

    it('spares it nothing either where most are back after a moment, but as if new after longer', () => {
      const whole = sketch([{ weight: 1, replicas: 5 }]);
      const withReady = (count: number, version: number) => ({
        ...whole,
        version,
        engines: whole.engines.map((engine) => ({
          ...engine,
          replicas: engine.replicas.map((replica, at) => ({ ...replica, ready: at < count })),
        })),
      });
      const atFirst = (awayMs: number) => {
        const vm = started(whole);
        deliver(vm, withReady(1, 2));
        wait(vm, awayMs);
        deliver(vm, withReady(5, 3));
        return Array.from({ length: 200 }, (_, i) => vm.request({ 'x-session-id': `k${i}` })).filter(
          ({ endpoints }) => endpoints[0] === OWNER,
        ).length;
      };
      expect(atFirst(1_000)).toBeLessThan(64);
      expect(atFirst(60_000)).toBe(200 - 4 * 4);
    });

    it('widens no test of one that was ejected', () => {
      const vm = started();
      fail(vm, 3);
      wait(vm, 1100);
      request(vm);
      for (const _ of [1, 2, 3]) {
        wait(vm, 2000);
        expect(request(vm).endpoints[0]).toBe(BACKUP);
      }
    });

    it('spreads what is more over those that are left of its engine', () => {
      const vm = started(sketch([{ weight: 1, replicas: 2 }]));
      deliver(vm, sketch([{ weight: 1, replicas: 3 }], { version: 2 }));
      const at = Array.from({ length: 60 }, (_, i) => vm.request({ 'x-session-id': `k${i}` }).endpoints[0]);
      expect(at.filter((endpoint) => endpoint === '10.0.0.2:8000')).toHaveLength(4);
    });

    it('changes nothing while snapshots name it, nor for those that are there when the VM begins', () => {
      const vm = started(sketch(after));
      deliver(vm, sketch(after, { version: 2 }));
      const many = Array.from({ length: 20 }, () => request(vm).endpoints[0]);
      expect(new Set(many)).toEqual(new Set([BACKUP]));
    });
  });
});
