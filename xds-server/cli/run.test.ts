import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { CertificateAuthority } from '../../test/conformance/certificates.js';
import { CONTROL_HEADER } from '../admin/control-header.js';
import { loadConfig } from '../config/load.js';
import { RecordingWriter } from '../control/recording/recording-writer.js';
import { Optimizer } from '../optimizer/index.js';
import { makePlan } from '../plan/make-plan.js';
import { Signals } from '../signals/signals.js';
import { demandOption, withoutOption } from './change-options.js';
import { run } from './run.js';

vi.mock('node:os', async (original) => {
  const os = await original<typeof import('node:os')>();
  return { ...os, userInfo: vi.fn(os.userInfo) };
});

const fixture = (name: string) => resolve(import.meta.dirname, '../config/testdata', name);

let out: string;
let err: string;
beforeEach(() => {
  out = '';
  err = '';
  vi.spyOn(console, 'log').mockImplementation((text) => {
    out += `${text}\n`;
  });
  vi.spyOn(console, 'error').mockImplementation((text) => {
    err += `${text}\n`;
  });
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

/** What a control server says. */
function answerOf(body: object): Response {
  return Response.json(body, { headers: { [CONTROL_HEADER]: '1' } });
}

describe('wardrop', () => {
  it('ends with 0 when a configuration is valid and with 2 and all problems when it is not', async () => {
    expect(await run(['validate', '-c', fixture('three-regions.yaml')])).toBe(0);
    expect(out).toContain('2 frontends, 2 engines, 1 pool, 1 profile');
    expect(await run(['validate', '-c', fixture('typos.yaml')])).toBe(2);
    expect(err.match(/typos\.yaml:\d+:\d+: /g)).toHaveLength(7);
    expect(err).toContain('7 problems (WARDROP_CONFIG_INVALID)');
  });

  it('names in the help of a command the options that it needs', async () => {
    expect(await run(['bootstrap', '--help'])).toBe(0);
    expect(out).toContain('Usage: wardrop bootstrap -c <file> --frontend <id> [options]\n');
    out = '';
    expect(await run(['status', '--help'])).toBe(0);
    expect(out).toContain('Usage: wardrop status [options]\n');
  });

  it('says which needs a model is refused with', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-validate-'));
    const file = join(folder, 'fleet.yaml');
    writeFileSync(
      file,
      `frontends: [{id: f, region: r}]
engines:
  - {id: a, region: r, models: [big, small], labels: {residency: eu}, endpoints: [127.0.0.1:1]}
  - {id: b, region: r, models: [big], labels: {residency: us}, endpoints: [127.0.0.1:2]}
needs:
  in-eu: {when: {path: /eu}, engines: {residency: eu}}
  in-us: {when: {path: /us}, engines: {residency: us}}
`,
    );
    expect(await run(['validate', '-c', file])).toBe(0);
    rmSync(folder, { recursive: true });
    expect(out).toContain('2 engines, 4 pools');
    expect(out).toContain(
      'big: 3 pools by 2 needs: in-eu, in-us\n  big: a, b\n  big~in-eu: a\n  big~in-us: b\nsmall',
    );
    expect(out).toMatch(
      /small: 1 pool by 1 need: in-us\n {2}small: a\n {2}refused, as no engine meets it: in-us\n$/,
    );
  });

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
    [['penalty', 'release', 'b'], 'b has no penalty until 2026-01-29T00:00:00.000Z'],
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
    expect(out).toBe(`${line}\n`);
  });

  it('shows on one screen how things are, with status 3 while there are alarms', async () => {
    const atMs = Date.UTC(2026, 0, 31);
    const engine = (engineId: string, remarks: readonly string[]) => ({
      ...{ engineId, utilization: 0.5, effectiveCapacity: 1, readyReplicas: 1, replicas: 1, inFlight: 3 },
      traffic: { endedPerSecond: 9, failuresPerSecond: 0.1, firstTokenSeconds: 0.2, wholeSeconds: null },
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
    expect(out).toBe(`up for 90 s, since 2026-01-30T23:58:30.000Z
plan 7 (abc) for 60 min, made by the control server at 10.0.0.9:18001

1 alarm:
  config, for 10 min: broken

frontend  planned for  by        offered  refused  failed  first token  whole answer  Envoys
west             12.3  measured     11.1    2.0 %   0.0 %  200 ms       –                  1

engine  utilisation  requests  failures  first token  whole answer  capacity  ready   in flight  remarks
a            50.0 %       9.0       0.1  200 ms       –                 1.00  1 of 1          3  drained
… and 20 more, of which there is nothing to say

Envoy  frontend  version  xDS     snapshot  heard of
w1     west       1.40.0  behind  newest    2 s ago
`);
    status.alarms = [];
    expect(await run(['status', '--json', '--url', 'http://127.0.0.1:1'])).toBe(0);
    expect(out).toContain('"alarms": []');
  });

  it('says when a control server of before an upgrade does not know the answer', async () => {
    const answer = { engines: [], frontends: [{ frontendId: 'west', growth: 2 }] };
    const headers = { [CONTROL_HEADER]: '1' };
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json(answer, { headers }));
    expect(await run(['headroom', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(err).toContain('the control server is of another version: restart it');
  });

  it('takes nothing else that answers for a control server', async () => {
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => Response.json({ id: 'cmpl-1' }));
    for (const command of [['status'], ['headroom'], ['drain', 'a'], ['record', '--out', '/none/x.gz']]) {
      expect(await run([...command, '--url', 'http://127.0.0.1:8000'])).toBe(1);
    }
    expect(
      err.match(/what answers at http:\/\/127.0.0.1:8000\/ \(status 200\) is no control server/g),
    ).toHaveLength(4);
  });

  it('says that a control server broke off its answer', async () => {
    const body = () => new ReadableStream({ pull: (pulled) => pulled.error(new TypeError('terminated')) });
    vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
      return new Response(body(), { headers: { [CONTROL_HEADER]: '1' } });
    });
    expect(await run(['status', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(err).toBe('error: no control server answers at http://127.0.0.1:1/: terminated\n');
  });

  it('keeps what was recorded before a control server broke off', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-record-'));
    const out = join(folder, 'r.jsonl.gz');
    async function* told() {
      yield Buffer.from('{"wardropRecording":2}\n');
      throw new TypeError('terminated');
    }
    const body = Readable.toWeb(Readable.from(told())) as ReadableStream;
    vi.spyOn(globalThis, 'fetch').mockResolvedValue(
      new Response(body, { headers: { [CONTROL_HEADER]: '1' } }),
    );
    expect(await run(['record', '--out', out, '--url', 'http://127.0.0.1:1'])).toBe(1);
    const written = gunzipSync(readFileSync(out)).toString();
    rmSync(folder, { recursive: true });
    expect(written).toBe('{"wardropRecording":2}\n');
    expect(err).toContain('the control server at http://127.0.0.1:1/ broke off (terminated)');
  });

  it('does not wait for a control server that stands still', async () => {
    const signal = AbortSignal.abort(new DOMException('too late', 'TimeoutError'));
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(signal);
    expect(await run(['status', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(timeout).toHaveBeenCalledWith(10_000);
    expect(err).toContain('no control server answers at http://127.0.0.1:1/: too late');
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
    expect(err).toContain('Where the control server answers is not known by that; give --url');
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
    expect(out).toBe(
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

  it('does not start with a configuration that has problems', async () => {
    vi.spyOn(process, 'on').mockReturnValue(process);
    expect(await run(['serve', '-c', fixture('typos.yaml')])).toBe(2);
    expect(err.match(/typos\.yaml:\d+:\d+: /g)).toHaveLength(7);
  });

  it('says that a recording without solves is nothing to replay', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-replay-'));
    const file = join(folder, 'empty.jsonl.gz');
    writeFileSync(file, gzipSync('{"wardropRecording":1}\n'));
    expect(await run(['replay', file])).toBe(1);
    rmSync(folder, { recursive: true });
    expect(err).toContain('holds no solve');
  });

  it('shows what a recording holds before the place where it is damaged', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-replay-'));
    const file = join(folder, 'damaged.jsonl.gz');
    const config = loadConfig(fixture('three-regions.yaml'));
    const { state } = new Signals(config, [], 0).evaluate(1_000);
    const { profiles, policy } = config;
    const input = { previous: null, state, profiles, policy };
    const optimizer = new Optimizer();
    const { plan } = await makePlan(optimizer, input, () => 1_000);
    await optimizer.close();
    const lines = [...new RecordingWriter().lines({ kind: 'solve', input, times: [1_000], plan })];
    writeFileSync(file, gzipSync(`${lines.join('')}{"kind":"so`));
    expect(await run(['replay', file])).toBe(1);
    rmSync(folder, { recursive: true });
    expect(out).toMatch(/1970-01-01T00:00:01.000Z .* same /);
    expect(err).toContain('line 3 of the recording is no JSON');
  });

  it.each([
    [['bogus'], "unknown command 'bogus'"],
    [['serve', '-c', fixture('three-regions.yaml'), '--record-size', '5'], 'need --record'],
    [['validate'], "required option '-c, --config <file>' not specified"],
    [['solve', '--demand', 'west'], 'expected FRONTEND[/POOL]=+30%'],
    [['solve'], 'give --config or --url'],
    [['solve', '--offline'], '--offline needs --config'],
    [['headroom', '--url', 'nonsense'], 'is no URL'],
    [['changes', '--since', 'x'], 'expected the number of a plan'],
    [['decide'], "required option '--frontend <id>' not specified"],
    [['decide', '--frontend', 'f'], 'give --config or --url'],
    [
      ['decide', '--frontend', 'f', '--header', 'a: b', '--header', 'c'],
      "--header number 2: expected 'name: value'",
    ],
    [['decide', '--frontend', 'f', '--body', '/no/such'], '--body: ENOENT'],
    [['drain'], "missing required argument 'target'"],
    [['drain', 'b', '--for', 'ever'], 'Give a time such as 30s'],
    [['penalty', 'hold', 'b'], 'give --config or --url'],
    [
      ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'wset'],
      '"wset" is none of east, west',
    ],
    [
      ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', '--admin', 'here'],
      '--admin: "here" is not an IP address (give ip:port',
    ],
    ...(
      [
        [['--envoy', '1.38.2'], '--envoy needs --static'],
        [['--from', 'http://127.0.0.1:1'], '--from needs --static'],
        [['--ca', '/ca.pem'], '--ca: the control server speaks no TLS'],
        [['--client-key', '/key.pem'], '--client-key: the control server speaks no TLS'],
        [['--control', '10.0.0.1:18000'], '--control: "10.0.0.1:18000" is no host'],
      ] as const
    ).map(([options, reason]): [string[], string] => [
      ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', ...options],
      reason,
    ]),
  ])('ends %j with 2 and a reason', async (args, reason) => {
    expect(await run(args)).toBe(2);
    expect(err).toContain(reason);
  });

  it('prints help, with every command', async () => {
    expect(await run(['--help'])).toBe(0);
    const commands = out.slice(out.indexOf('Commands:'), out.indexOf('Examples:'));
    const names = [...commands.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
    expect(names).toEqual(expect.arrayContaining(['serve', 'drain', 'simulate', 'schema']));
    for (const name of names) {
      expect(await run([name, '--help'])).toBe(0);
    }
  });

  it('tells by its number which user acts who has no name, as in many containers', async () => {
    vi.mocked(userInfo).mockImplementation(() => {
      throw new Error('uv_os_get_passwd returned ENOENT');
    });
    const drains = [{ engineId: 'b', address: null, sinceMs: 0, overSeconds: 30, untilMs: 0 }];
    const asked = vi.spyOn(globalThis, 'fetch').mockResolvedValue(answerOf({ drains, orders: [] }));
    expect(await run(['drain', 'b', '--url', 'http://127.0.0.1:1'])).toBe(0);
    expect(JSON.parse(String(asked.mock.calls[0]![1]!.body)).by).toMatch(/^user \d+@./);
    expect(out).toContain('b is drained until');
  });

  it('refuses to record for longer than a timer lasts, which would end at once', async () => {
    const record = ['record', '--out', '/none/x.gz', '--url', 'http://127.0.0.1:1'];
    expect(await run([...record, '--for', '25d'])).toBe(2);
    expect(err).toContain('--for: at most 24d');
    expect(await run([...record, '--for', '24d'])).toBe(1);
    expect(err).toContain('no control server answers');
  });

  it('ends with 1 when no control server answers', async () => {
    expect(await run(['headroom', '--url', 'http://127.0.0.1:1'])).toBe(1);
    expect(err).toContain('no control server answers at http://127.0.0.1:1/');
  });

  it('solves a configuration offline', async () => {
    const file = fixture('over-demand.yaml');
    expect(await run(['solve', '--offline', '-c', file, '--without', 'engine=e2', '--json'])).toBe(0);
    const { rows } = JSON.parse(out) as { rows: { refusedRps: { before: number; after: number } }[] };
    expect(rows[0]!.refusedRps.before).toBeCloseTo(10, 0);
    expect(rows[0]!.refusedRps.after).toBeCloseTo(20, 0);
    expect(await run(['solve', '--offline', '-c', file, '--without', 'engine=e9'])).toBe(2);
    expect(err).toContain('unknown engine "e9"; known: e1, e2');
  });

  it('explains a weight offline', async () => {
    const args = ['explain', '--offline', '-c', fixture('over-demand.yaml'), '--frontend', 'f1'];
    expect(await run([...args, '--engine', 'e2'])).toBe(0);
    expect(out).toMatch(/^f1 → e2, pool acme-chat-8b: weight \d/);
    expect(out).toContain('Demand above capacity: of 30.0 requests/s');
    expect(await run([...args, '--engine', 'e3'])).toBe(2);
    expect(err).toContain('unknown engine "e3"; known: e1, e2');
  });

  it('prints the JSON Schema', async () => {
    expect(await run(['schema'])).toBe(0);
    expect(JSON.parse(out)).toMatchObject({ type: 'object', required: ['frontends', 'engines'] });
    expect(out).not.toContain('"hint"');
  });
});

describe('wardrop bootstrap', () => {
  it('prints YAML or JSON that names frontend, node and addresses', async () => {
    const args = ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', '--node-id', 'n1'];
    expect(await run(args)).toBe(0);
    const yaml = parse(out) as object;
    out = '';
    expect(await run([...args, '--format', 'json'])).toBe(0);
    expect(JSON.parse(out)).toEqual(yaml);
    expect(yaml).toMatchObject({
      node: {
        id: 'n1',
        cluster: 'west',
        locality: { region: 'west' },
        metadata: { wardrop: { frontend: 'west' } },
      },
    });
    expect(JSON.stringify(yaml)).toContain('"port_value":18000');
    expect(JSON.stringify(yaml)).toContain('"port_value":18001');
  });

  it('refuses a node id that sync would refuse', async () => {
    const args = ['bootstrap', '-c', fixture('three-regions.yaml'), '--frontend', 'west', '--node-id'];
    for (const id of ['', 'my node', 'nö', 'n'.repeat(257)]) {
      expect(await run([...args, id])).toBe(2);
      expect(err).toContain(`--node-id: ${JSON.stringify(id)} is no name`);
    }
    expect(await run([...args, 'n'.repeat(256)])).toBe(0);
  });

  it('asks for what only the operator knows', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-cli-'));
    const file = join(folder, 'fleet.yaml');
    const authority = new CertificateAuthority();
    const { certificate, key } = authority.issue('127.0.0.1');
    writeFileSync(join(folder, 'cert.pem'), certificate);
    writeFileSync(join(folder, 'key.pem'), key);
    writeFileSync(join(folder, 'ca.pem'), authority.certificate);
    const text = (server: string) =>
      `server: {${server}}\nfrontends: [{id: f, region: r}]\nengines: [{id: e, region: r, models: [m], endpoints: [127.0.0.1:1]}]\n`;
    const bootstrap = (...args: string[]) => run(['bootstrap', '-c', file, '--frontend', 'f', ...args]);
    try {
      writeFileSync(file, text('xds: {listen: 0.0.0.0:1}, token: 0123456789abcdef'));
      expect(await bootstrap()).toBe(2);
      expect(err).toContain('give --control');
      expect(await bootstrap('--control', 'control.example')).toBe(0);
      expect(out).toContain('Bearer 0123456789abcdef');

      const peers = '[{xds: "two:1", sync: "two:2"}, {xds: "three:1", sync: "three:2"}]';
      writeFileSync(file, text(`xds: {listen: 0.0.0.0:1}, sync: {listen: 0.0.0.0:2}, peers: ${peers}`));
      const servers = () => out.match(/(?<= {2}address: )\w+$/gm);
      expect(await bootstrap()).toBe(0);
      expect(servers()).toEqual(['two', 'three', 'two', 'three']);
      out = '';
      expect(await bootstrap('--control', 'three')).toBe(0);
      expect(servers()).toEqual(['three', 'two', 'three', 'two']);

      writeFileSync(file, text('tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem}'));
      expect(await bootstrap()).toBe(2);
      expect(err).toContain('give --ca');
      expect(await bootstrap('--ca', '/ca.pem')).toBe(2);
      expect(err).toContain('give --client-cert and --client-key');
      expect(await bootstrap('--ca', '/ca.pem', '--client-cert', '/c.pem')).toBe(2);
      expect(err).toContain('--client-cert and --client-key belong together');
      expect(await bootstrap('--ca', '/ca.pem', '--client-cert', '/c.pem', '--client-key', '/k.pem')).toBe(0);
      expect(out).toContain('filename: /ca.pem');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('options of changes', () => {
  it('read engines and demands', () => {
    expect(withoutOption('engine=b', ['a'])).toEqual(['a', 'b']);
    expect(demandOption('west=+30%')).toEqual([{ frontendId: 'west', factor: 1.3 }]);
    expect(demandOption('west=-10%')).toEqual([{ frontendId: 'west', factor: 0.9 }]);
    expect(demandOption('west/org/m=120.5')).toEqual([
      { frontendId: 'west', poolId: 'org/m', requestsPerSecond: 120.5 },
    ]);
    for (const wrong of ['b', 'replica=b', 'engine='])
      expect(() => withoutOption(wrong)).toThrow('engine=ID');
    for (const wrong of ['west=30%', 'west=', '=1', 'west=-5'])
      expect(() => demandOption(wrong)).toThrow('expected');
    expect(() => demandOption('west=-120%')).toThrow('demand cannot fall by more than 100 %');
  });
});
