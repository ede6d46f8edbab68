import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os, { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import { describe, expect, it, vi } from 'vitest';
import { CONTROL_HEADER } from '../../admin/control-header.js';
import { run } from '../run.js';
import { answerOf, output } from '../testing/output.js';

const told = output();

describe('commands that ask a control server', () => {
  it.each([
    [['drain', 'a'], 'a is drained until 2026-01-31T00:00:00.000Z; wardrop undrain ends that'],
    [
      ['drain', '10.0.0.1:80'],
      '10.0.0.1:80 is drained until 2026-01-30T00:00:00.000Z; wardrop undrain ends that',
    ],
    [['undrain', 'a'], 'a is back in service'],
    [
      ['penalty', 'hold', 'b'],
      'the penalty of b stays as it is until 2026-01-29T00:00:00.000Z; wardrop penalty release ends it',
    ],
    [['penalty', 'release', 'b'], 'b gets no penalty until 2026-01-29T00:00:00.000Z'],
  ])('says after %j what is so from now on', async (args, line) => {
    const orders = {
      drains: [
        { engineId: 'a', address: '10.0.0.1:80', untilMs: Date.UTC(2026, 0, 30) },
        { engineId: 'a', address: null, untilMs: Date.UTC(2026, 0, 31) },
      ],
      orders: [{ engineId: 'b', untilMs: Date.UTC(2026, 0, 29) }],
    };
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(answerOf(orders));
    expect(await run([...args, '--url', 'http://127.0.0.1:1'])).toBe(0);
    expect(told.out).toBe(`${line}\n`);
  });

  it('shows on one screen how things are, with status 3 while there are alarms', async () => {
    const atMs = Date.UTC(2026, 0, 31);
    const engine = (engineId: string, remarks: readonly string[]) => ({
      ...{ engineId, utilization: 0.5, effectiveCapacity: 1, readyReplicas: 1, replicas: 1, inFlight: 3 },
      traffic: {
        ...{ endedPerSecond: 9, failuresPerSecond: 0.1, answers: 50, rejectedShare: 0.04 },
        ...{ firstTokenSeconds: 0.2, wholeSeconds: null },
      },
      remarks,
    });
    const status = {
      atMs,
      startedAtMs: atMs - 90_000,
      plan: { id: 'abc', sequence: 7, createdAtMs: atMs - 3_600_000 },
      plannedBy: '10.0.0.9:18001',
      steered: 1,
      alarms: [{ id: 'config', sinceMs: atMs - 600_000, message: 'broken' }],
      frontends: [
        {
          ...{ frontendId: 'west', requestsPerSecond: 12.34, sources: ['measured'], envoys: 1 },
          traffic: {
            ...{ offeredPerSecond: 11.1, refusedShare: 0.02, failedShare: 0 },
            ...{ firstTokenSeconds: 0.2, wholeSeconds: null },
          },
        },
      ],
      engines: [engine('a', ['drained']), ...Array.from({ length: 20 }, (_, at) => engine(`b${at}`, []))],
      envoys: [
        {
          ...{ nodeId: 'w1', frontendId: 'west', version: '1.40.0', xds: 'behind' },
          snapshot: { version: 3, isNewest: true, lastCallAtMs: atMs - 2_000 },
        },
      ],
    };
    const fetched = vi.spyOn(globalThis, 'fetch').mockImplementation(async () => answerOf(status));
    expect(await run(['status', '--url', 'http://127.0.0.1:1'])).toBe(3);
    expect(String(fetched.mock.calls[0]![0])).toBe('http://127.0.0.1:1/v1/status');
    expect(told.out).toBe(`up for 90 s, since 2026-01-30T23:58:30.000Z
plan 7 (abc) for 60 min, made by the control server at 10.0.0.9:18001

1 alarm:
  config, for 10 min: broken

frontend  planned for  by        offered  refused  failed  first token  whole answer  Envoys
west             12.3  measured     11.1    2.0 %   0.0 %  200 ms       –                  1

engine  utilisation  requests  failures  4xx    first token  whole answer  capacity  ready   in flight  remarks
a            50.0 %       9.0       0.1  4.0 %  200 ms       –                 1.00  1 of 1          3  drained
… and 20 more, of which there is nothing to say

Envoy  frontend  version  xDS     snapshot  heard of
w1     west       1.40.0  behind  newest    2 s ago
`);
    status.alarms = [];
    expect(await run(['status', '--json', '--url', 'http://127.0.0.1:1'])).toBe(0);
    expect(told.out).toContain('"alarms": []');
  });

  it('says of headroom what is refused already, and of many engines and frontends those that count', async () => {
    const refused = Array.from({ length: 8 }, (_, at) => {
      return { frontendId: `f${at}`, poolId: 'm', rps: 1 + at, byPriority: [{ priority: 0, rps: 1 + at }] };
    });
    const fullest = { engineId: 'e1', rho: 1 };
    const engines = Array.from({ length: 30 }, (_, at) => {
      return {
        engineId: `e${at}`,
        refused: at === 3 ? refused : [],
        lostPools: at === 5 ? ['m'] : [],
        fullest,
      };
    });
    const frontends = [
      { frontendId: 'f0', refusedRps: 0, rps: 3, growth: 1 },
      { frontendId: 'f1', refusedRps: 2.5, rps: 6, growth: 1 },
    ];
    const answer = { refusedRps: 2.5, engines, frontends, together: { rps: 9, growth: 1 } };
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(answerOf(answer));
    expect(await run(['headroom', '--url', 'http://127.0.0.1:1'])).toBe(0);
    const lines = told.out.split('\n').map((line) => line.replaceAll(/ {2,}/g, '|'));
    expect(lines).toEqual([
      '2.5 of 9.0 requests/s are refused now, and nobody can grow. What is refused without an engine includes them.',
      '',
      'without engine|refused|pools with nobody|then fullest',
      'e3|8.0/s of f7 to m, 7.0/s of f6 to m, 6.0/s of f5 to m, 5.0/s of f4 to m, 4.0/s of f3 to m and 6.0/s of 3 more|-|e1 at 100.0 %',
      'e5|nobody|m|e1 at 100.0 %',
      '… and 28 more, without each of which nobody is refused',
      '',
      'frontend|requests/s|refused/s|can grow to|by',
      'f0|3.0|0.0|3.0|× 1.00',
      'f1|6.0|2.5|6.0|× 1.00',
      'all together|9.0|2.5|9.0|× 1.00',
      '',
    ]);
  });

  it('asks what the filter would do with a request as a client sends it', async () => {
    const view = {
      ...{ planId: 'abc', reason: 'planned', mode: null, pool: 'm', engine: 'a', weight: 0.5, retries: 1 },
      ...{ endpoints: [{ address: '10.0.0.1:80', engine: 'a' }], route: null, answer: null, note: 'N.' },
    };
    const asked = vi.spyOn(globalThis, 'fetch').mockResolvedValue(answerOf(view));
    const args = [
      'decide',
      '--url',
      'http://127.0.0.1:1',
      '--frontend',
      'f',
      '--header',
      'X-Session-Id: a: b ',
    ];
    expect(await run(args)).toBe(0);
    expect(JSON.parse(String(asked.mock.calls[0]![1]!.body))).toMatchObject({
      headers: [
        ['X-Session-Id', 'a: b'],
        ['content-length', '2'],
      ],
      body: Buffer.from('{}').toString('base64'),
    });
    expect(told.out).toBe(
      [
        'pool       m',
        "engine     a (owns 50.0 % of the pool's keys)",
        'reason     planned',
        'endpoints  10.0.0.1:80 (a)',
        'retries    1',
        'plan       abc',
        '\nN.\n',
      ].join('\n'),
    );
  });

  it('finds the control server by a configuration file that is broken elsewhere', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-broken-'));
    const file = join(folder, 'fleet.yaml');
    const fetched = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new Error('refused'));
    writeFileSync(file, 'server: {admin: {listen: 127.0.0.1:7}}\nengines: none\n');
    expect(await run(['status', '-c', file])).toBe(1);
    expect(String(fetched.mock.calls[0]![0])).toBe('http://127.0.0.1:7/v1/status');
    writeFileSync(file, 'server: {\n');
    expect(await run(['status', '-c', file])).toBe(2);
    rmSync(folder, { recursive: true });
    expect(told.err).toContain('Where the control server answers is not known by that; give --url');
  });

  it('tells by its number which user acts who has no name, as in many containers', async () => {
    vi.spyOn(os, 'userInfo').mockImplementation(() => {
      throw new Error('uv_os_get_passwd returned ENOENT');
    });
    const drains = [{ engineId: 'b', address: null, sinceMs: 0, overSeconds: 30, untilMs: 0 }];
    const asked = vi.spyOn(globalThis, 'fetch').mockResolvedValue(answerOf({ drains, orders: [] }));
    expect(await run(['drain', 'b', '--url', 'http://127.0.0.1:1'])).toBe(0);
    expect(JSON.parse(String(asked.mock.calls[0]![1]!.body)).by).toMatch(/^user \d+@./);
    expect(told.out).toContain('b is drained until');
  });

  it('refuses to record for longer than a timer lasts, which would end at once', async () => {
    const record = ['record', '--out', '/none/x.gz', '--url', 'http://127.0.0.1:1'];
    expect(await run([...record, '--for', '25d'])).toBe(2);
    expect(told.err).toContain('Give a time from 1s to 24d.');
    expect(await run([...record, '--for', '24d'])).toBe(1);
    expect(told.err).toContain('no control server answers');
  });

  it('keeps what was recorded before a control server broke off', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-record-'));
    const file = join(folder, 'r.jsonl.gz');
    async function* recorded() {
      yield Buffer.from('{"wardropRecording":2}\n');
      throw new TypeError('terminated');
    }
    const body = Readable.toWeb(Readable.from(recorded())) as ReadableStream;
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(
      new Response(body, { headers: { [CONTROL_HEADER]: '1' } }),
    );
    expect(await run(['record', '--out', file, '--url', 'http://127.0.0.1:1'])).toBe(1);
    const written = gunzipSync(readFileSync(file)).toString();
    rmSync(folder, { recursive: true });
    expect(written).toBe('{"wardropRecording":2}\n');
    expect(told.err).toContain('the control server at http://127.0.0.1:1/ broke off (terminated)');
  });

  it('ends with 1 when no control server answers', async () => {
    expect(await run(['headroom', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(told.err).toContain('no control server answers at http://127.0.0.1:1/');
  });

  it('does not wait for a control server that stands still', async () => {
    const signal = AbortSignal.abort(new DOMException('too late', 'TimeoutError'));
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(signal);
    expect(await run(['status', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(timeout).toHaveBeenCalledWith(10_000);
    expect(told.err).toContain('no control server answers at http://127.0.0.1:1/: too late');
  });

  it('says that a control server broke off its answer', async () => {
    const body = () => new ReadableStream({ pull: (pulled) => pulled.error(new TypeError('terminated')) });
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      return new Response(body(), { headers: { [CONTROL_HEADER]: '1' } });
    });
    expect(await run(['status', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(told.err).toBe('error: no control server answers at http://127.0.0.1:1/: terminated\n');
  });

  it('says when a control server of before an upgrade does not know the answer', async () => {
    const answer = { engines: [], frontends: [{ frontendId: 'west', growth: 2 }] };
    const headers = { [CONTROL_HEADER]: '1' };
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(answer, { headers }));
    expect(await run(['headroom', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(told.err).toContain('the control server is of another version: restart it');
  });

  it('takes nothing else that answers for a control server', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({ id: 'cmpl-1' }));
    for (const command of [['status'], ['headroom'], ['drain', 'a'], ['record', '--out', '/none/x.gz']]) {
      expect(await run([...command, '--url', 'http://127.0.0.1:8000'])).toBe(1);
    }
    expect(
      told.err.match(/what answers at http:\/\/127.0.0.1:8000\/ \(status 200\) is no control server/g),
    ).toHaveLength(4);
  });
});
