import { describe, expect, it, vi } from 'vitest';
import { run } from './run.js';
import { fixture, output } from './testing/output.js';

const told = output();

describe('wardrop', () => {
  it('ends with 0 when a configuration is valid and with 2 and all problems when it is not', async () => {
    expect(await run(['validate', '-c', fixture('three-regions.yaml')])).toBe(0);
    expect(told.out).toContain('2 frontends, 2 engines, 1 pool, 1 profile');
    expect(await run(['validate', '-c', fixture('typos.yaml')])).toBe(2);
    expect(told.err.match(/typos\.yaml:\d+:\d+: /g)).toHaveLength(7);
    expect(told.err).toContain('7 problems (WARDROP_CONFIG_INVALID)');
  });

  it.each([
    [['bogus'], "unknown command 'bogus'"],
    [['serve', '-c', fixture('three-regions.yaml'), '--record-size', '5'], 'need --record'],
    [['validate'], "required option '-c, --config <file>' not specified"],
    [['solve', '--demand', 'west'], 'expected FRONTEND[/POOL]=+30%'],
    [['solve'], 'give --config or --url'],
    [['solve', '--offline'], '--offline needs --config'],
    [['headroom', '--url', 'nonsense'], 'is no URL'],
    [['changes', '--since', 'x'], 'expected the number or the id of a plan'],
    [
      ['explain', '--frontend', 'f', '--engine', 'a', '--plan', 'x'],
      'expected the number or the id of a plan',
    ],
    [['decide'], "required option '--frontend <id>' not specified"],
    [['decide', '--frontend', 'f'], 'give --config or --url'],
    [
      ['decide', '--frontend', 'f', '--header', 'a: b', '--header', 'c'],
      "--header number 2: expected 'name: value'",
    ],
    [
      ['decide', '--frontend', 'f', '--body', '/no/such'],
      '--body: /no/such cannot be read: no such file or directory (WARDROP',
    ],
    [['drain'], "missing required argument 'target'"],
    [['drain', 'b', '--for', 'ever'], 'Give a time such as 30s'],
    [['drain', 'b', '--for', '0s'], 'Give a time from 1s to 30d.'],
    [['drain', 'b', '--over', '2h'], 'Give a time from 0s to 1h.'],
    [['penalty', 'release', 'b', '--for', '31d'], 'Give a time from 1s to 30d.'],
    [['record', '--out', '/no/such', '--for', '0s'], 'Give a time from 1s to 24d.'],
    [
      ['decide', '--frontend', 'f', '--path', 'v1'],
      '--path: expected one that begins with /, without spaces',
    ],
    [['decide', '--frontend', 'f', '--method', 'get'], '--method: expected one such as POST'],
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
    expect(told.err).toContain(reason);
  });

  it('names in the help of a command the options that it needs', async () => {
    expect(await run(['bootstrap', '--help'])).toBe(0);
    expect(told.out).toContain('Usage: wardrop bootstrap -c <file> --frontend <id> [options]\n');
    told.out = '';
    expect(await run(['status', '--help'])).toBe(0);
    expect(told.out).toContain('Usage: wardrop status [options]\n');
  });

  it('prints help, with every command', async () => {
    expect(await run(['--help'])).toBe(0);
    const commands = told.out.slice(told.out.indexOf('Commands:'), told.out.indexOf('Examples:'));
    const names = [...commands.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => name!);
    expect(names).toEqual(expect.arrayContaining(['serve', 'drain', 'simulate', 'schema']));
    for (const name of names) {
      expect(await run([name, '--help'])).toBe(0);
    }
  });

  it('prints the JSON Schema', async () => {
    expect(await run(['schema'])).toBe(0);
    expect(JSON.parse(told.out)).toMatchObject({ type: 'object', required: ['frontends', 'engines'] });
    expect(told.out).not.toContain('"hint"');
  });

  it('does not start with a configuration that has problems', async () => {
    vi.spyOn(process, 'on').mockReturnValue(process);
    expect(await run(['serve', '-c', fixture('typos.yaml')])).toBe(2);
    expect(told.err.match(/typos\.yaml:\d+:\d+: /g)).toHaveLength(7);
  });
});
