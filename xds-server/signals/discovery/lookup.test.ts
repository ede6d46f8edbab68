import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DnsAnswer, DnsServer } from '../testing/dns-server.js';
import { type RecordResolver, systemLookup } from './lookup.js';

const absent = Object.assign(new Error('no data'), { code: 'ENODATA' });

function resolver(answers: {
  four?: Record<string, [string, number][]> | Error;
  six?: Record<string, [string, number][]> | Error;
  srv?: { name: string; port: number }[];
}): RecordResolver {
  const records = (known: typeof answers.four) => async (host: string) => {
    if (known instanceof Error) throw known;
    const found = known?.[host];
    if (found === undefined) throw absent;
    return found.map(([address, ttl]) => ({ address, ttl }));
  };
  return {
    resolve4: records(answers.four),
    resolve6: records(answers.six),
    resolveSrv: async () => (answers.srv ?? []).map((target) => ({ ...target, priority: 0, weight: 0 })),
  } as unknown as RecordResolver;
}

describe('DNS', () => {
  const dns = { kind: 'dns', host: 'e', port: 8000 } as const;

  it('gives both families of addresses, for as long as the shortest-lived record', async () => {
    const lookup = systemLookup(resolver({ four: { e: [['10.0.0.1', 60]] }, six: { e: [['::1', 20]] } }));
    expect(await lookup(dns)).toEqual({ addresses: ['10.0.0.1:8000', '[::1]:8000'], secondsToLive: 20 });
  });

  it('bounds how long an answer lives', async () => {
    const living = (ttl: number) => systemLookup(resolver({ four: { e: [['10.0.0.1', ttl]] } }))(dns);
    expect((await living(0)).secondsToLive).toBe(1);
    expect((await living(86_400)).secondsToLive).toBe(300);
  });

  it('is no answer when one family fails: its replicas would go', async () => {
    const lookup = systemLookup(
      resolver({
        four: { e: [['10.0.0.1', 60]] },
        six: Object.assign(new Error('server failed'), { code: 'ESERVFAIL' }),
      }),
    );
    await expect(lookup(dns)).rejects.toThrowError('server failed');
  });

  it.each(['0.0.0.0', '224.0.0.1', '255.255.255.255', '::', 'ff02::1'])(
    'is no answer when it is %s, as of resolvers that block a name',
    async (ip) => {
      const records = {
        e: [
          ['10.0.0.1', 60],
          [ip, 60],
        ] as [string, number][],
      };
      const lookup = systemLookup(resolver(ip.includes(':') ? { six: records } : { four: records }));
      await expect(lookup(dns)).rejects.toThrowError('no single machine');
    },
  );

  it('finds names of the hosts file', async () => {
    const { addresses } = await systemLookup(resolver({}))({ kind: 'dns', host: 'localhost', port: 80 });
    expect(addresses.some((address) => address === '127.0.0.1:80' || address === '[::1]:80')).toBe(true);
  });

  it('follows SRV records to their targets and ports', async () => {
    const lookup = systemLookup(
      resolver({
        srv: [
          { name: 'x', port: 1 },
          { name: 'y', port: 2 },
        ],
        four: { x: [['10.0.0.1', 60]], y: [['10.0.0.2', 60]] },
      }),
    );
    expect(await lookup({ kind: 'srv', name: '_http._tcp.e' })).toEqual({
      addresses: ['10.0.0.1:1', '10.0.0.2:2'],
      secondsToLive: 5,
    });
  });
});

describe('a name server', () => {
  const NAME = 'engines.wardrop.invalid';
  const dns = { kind: 'dns', host: NAME, port: 8000 } as const;
  const srv = { kind: 'srv', name: `_http._tcp.${NAME}` } as const;
  let server: DnsServer;
  beforeEach(async () => {
    server = await DnsServer.start();
  });
  afterEach(() => server.stop());

  it('is asked for records of a name, and of the targets of a service', async () => {
    server.answers.set(NAME, { a: ['10.0.0.1', '10.0.0.2'] });
    server.answers.set(srv.name, { srv: [{ name: NAME, port: 9000 }] });
    const lookup = systemLookup(server.resolver());
    const two = (port: number) => [`10.0.0.1:${port}`, `10.0.0.2:${port}`];
    expect(await lookup(dns)).toEqual({ addresses: two(8000), secondsToLive: 1 });
    expect(await lookup(srv)).toEqual({ addresses: two(9000), secondsToLive: 1 });
  });

  const failures: DnsAnswer[] = [
    'nothing',
    'no such name',
    'server failure',
    'refused',
    'garbage',
    'silence',
  ];
  it.each(failures)('that answers %j has found nobody, and that is told as a failure', async (failure) => {
    const lookup = systemLookup(server.resolver());
    server.answers.set(NAME, failure);
    await expect(lookup(dns)).rejects.toThrowError(NAME);
    server.answers.set(srv.name, failure);
    await expect(lookup(srv)).rejects.toThrowError(NAME);
    // The service is there, its targets are not.
    server.answers.set(srv.name, { srv: [{ name: NAME, port: 9000 }] });
    await expect(lookup(srv)).rejects.toThrowError(NAME);
  });
});

describe('a file', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'wardrop-lookup-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  it('has one address a line, with comments', async () => {
    const path = join(folder, 'replicas');
    writeFileSync(path, '# ours\n10.0.0.1:80\n\n  [::1]:80 # new\n');
    expect(await systemLookup()({ kind: 'file', path })).toEqual({
      addresses: ['10.0.0.1:80', '[::1]:80'],
      secondsToLive: 1,
    });
  });

  it('with a broken line is refused as a whole, and told where', async () => {
    const path = join(folder, 'replicas');
    writeFileSync(path, '10.0.0.1:80\n10.0.0.2\n');
    await expect(systemLookup()({ kind: 'file', path })).rejects.toThrowError(/replicas:2: .*no port/);
  });
});
