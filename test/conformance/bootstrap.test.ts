import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fromJson, type JsonValue } from '@bufbuild/protobuf';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { CLIENT_STEERING_HEADERS } from '../../wire/names.js';
import { BootstrapSchema } from '../../xds-server/gen/envoy/config/bootstrap/v3/bootstrap_pb.js';
import { type BootstrapInput, buildBootstrap, frontendOf, XdsServer } from '../../xds-server/xds/index.js';
import { registry } from '../../xds-server/xds/registry.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { eventually } from '../e2e/harness/process.js';
import { freePorts } from '../free-ports.js';
import { CertificateAuthority } from './certificates.js';
import { Envoy, envoyBinary } from './envoy/envoy.js';
import { viewOf } from './messages.js';
import { printed } from './printed.js';
import { silent } from './silent.js';

const example = (name: string) =>
  readFileSync(new URL(`../../envoy/standalone/${name}.yaml`, import.meta.url), 'utf8');
const frontend = { id: 'west', region: 'westeurope', listen: '127.0.0.1:1' };

const folder = mkdtempSync(join(tmpdir(), 'wardrop-validate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const validate = async (bootstrap: string) => {
  // In a file: with the filter in it, a bootstrap is too long for a command line.
  const file = join(folder, 'bootstrap.yaml');
  writeFileSync(file, bootstrap);
  const { stdout, stderr } = await promisify(execFile)(await envoyBinary(), [
    ...['--mode', 'validate', '--log-level', 'warning', '-c', file],
  ]);
  return suspiciousLines(stdout + stderr);
};

const envoyVersion = async () => {
  const { stdout } = await promisify(execFile)(await envoyBinary(), ['--version']);
  return /\/(\d+\.\d+\.\d+)\//.exec(stdout)![1]!;
};

describe.each(['bootstrap', 'own-listener', 'without-filter'])('the example %s', (name) => {
  it('has no field that Envoy does not know', () => {
    const bootstrap = parse(example(name)) as JsonValue;
    expect(() => fromJson(BootstrapSchema, bootstrap, { registry })).not.toThrow();
  });

  it('is valid for Envoy', async () => {
    expect(await validate(example(name))).toEqual([]);
  });
});

it('the example bootstrap is what the program prints, with remarks', () => {
  const input: BootstrapInput = {
    frontend: { id: 'west', region: 'westeurope', listen: '127.0.0.1:8080' },
    nodeId: 'west-1',
    xds: { host: '127.0.0.1', port: 18000 },
    sync: { host: '127.0.0.1', port: 18001 },
    listen: '127.0.0.1:8080',
  };
  // Read through the same messages, so that ways of writing the same don't count.
  const read = (json: JsonValue) => fromJson(BootstrapSchema, json, { registry });
  expect(read(parse(example('bootstrap')) as JsonValue)).toEqual(read(buildBootstrap(input)));
});

it('the example of an own listener removes all that clients must not set', () => {
  const removed = [...example('own-listener').matchAll(/- remove: (\S+)/g)].map(([, header]) => header);
  expect(removed).toEqual(CLIENT_STEERING_HEADERS);
});

describe('the bootstrap that the command prints', () => {
  const path = mkdtempSync(join(tmpdir(), 'wardrop-bootstrap-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  const print = async (steering: string, ...options: string[]) => {
    const config = join(path, `${steering}.yaml`);
    writeFileSync(
      config,
      [
        `steering: ${steering}`,
        'frontends: [{id: west, region: r}]',
        'engines:',
        '- {id: a, region: r, models: [m, "org/n-1.5:x"], labels: {place: eu}, endpoints: ["10.0.0.1:80", "[fd00::1]:80"]}',
        '- {id: b, region: r, models: [m], endpoints: ["10.0.0.2:80"]}',
        'needs: {eu: {when: {header: {x-place: eu}}, engines: {place: eu}}}',
      ].join('\n'),
    );
    const args = ['-c', config, '--frontend', 'west', '--format', 'json', ...options];
    if (options.includes('--static')) args.push('--envoy', await envoyVersion());
    return printed('bootstrap', ...args);
  };
  const modes: [string, string[]][] = [
    ['filter', []],
    ['filter', ['--delta']],
    ['filter', ['--static']],
    ['native', ['--static', '--delta']],
    ['native-ring-hash', ['--static']],
    ['native-round-robin', ['--static']],
  ];

  it.each(modes)('is valid for Envoy with steering %s and options %j', async (steering, options) => {
    const bootstrap = await print(steering, ...options);
    expect(() => fromJson(BootstrapSchema, JSON.parse(bootstrap) as JsonValue, { registry })).not.toThrow();
    expect(await validate(bootstrap)).toEqual([]);
  });

  it('is refused by Envoy when the snapshot in it was changed', async () => {
    const bootstrap = await print('filter', '--static');
    const spoiled = bootstrap.replace(/snapshot=(.{200}).{4}/, 'snapshot=$1AAAA');
    await expect(validate(spoiled)).rejects.toThrow('snapshot refused');
  });
});

describe('a bootstrap in Envoy', () => {
  const closers: (() => unknown)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  const folder = () => {
    const path = mkdtempSync(join(tmpdir(), 'wardrop-tls-'));
    closers.push(() => rmSync(path, { recursive: true, force: true }));
    return path;
  };

  async function startEnvoy(changes: Partial<BootstrapInput>) {
    const [adminPort] = await freePorts(1);
    const admin = `127.0.0.1:${adminPort}`;
    const unused = { host: '127.0.0.1', port: 9 };
    const input = { frontend, nodeId: 'n1', xds: unused, sync: unused, admin, ...changes };
    const envoy = await Envoy.start(buildBootstrap(input), admin);
    closers.push(() => envoy.stop());
    return envoy;
  }

  it('is valid with everything that it can have', async () => {
    const path = folder();
    const { certificate, key } = new CertificateAuthority().issue('envoy');
    writeFileSync(join(path, 'cert.pem'), certificate);
    writeFileSync(join(path, 'key.pem'), key);
    const caFile = join(path, 'cert.pem');
    const tls = { caFile, client: { certificateFile: caFile, keyFile: join(path, 'key.pem') } };
    const bootstrap = buildBootstrap({
      frontend,
      nodeId: 'n1',
      xds: { host: 'wardrop.internal', port: 18000, tls, token: '100%' },
      sync: { host: '::1', port: 18001, tls: { ...tls, serverName: 'wardrop.internal' } },
      listen: '[::1]:8080',
      admin: '[::1]:9901',
      loadReports: true,
    });
    expect(await validate(JSON.stringify(bootstrap))).toEqual([]);
  });

  it('connects by TLS both ways with a token, and distrusts another name of the same authority', async () => {
    const authority = new CertificateAuthority();
    // A client that ends at TLS 1.2, as Envoy does by itself, can do nothing with these.
    const own = authority.issueOf('P-384', '127.0.0.1', 'wardrop.internal');
    const envoyCertificate = authority.issueOf('P-384', 'envoy');
    const path = folder();
    const file = (name: string, content: Buffer) => {
      writeFileSync(join(path, name), content);
      return join(path, name);
    };
    const token = 'secret with 100% %PROTOCOL%';
    const server = new XdsServer({
      listen: '127.0.0.1:0',
      tls: { certificate: own.certificate, key: own.key, clientCa: authority.certificate },
      token,
      resolveFrontend: (node) => frontendOf(node, [frontend]),
      log: silent,
    });
    const address = await server.start();
    closers.push(() => server.stop());
    server.setResources('west', { viewOf: () => viewOf({}) });

    const tls = {
      caFile: file('ca.pem', authority.certificate),
      client: {
        certificateFile: file('envoy.pem', envoyCertificate.certificate),
        keyFile: file('envoy.key', envoyCertificate.key),
      },
    };
    const xds = { host: '127.0.0.1', port: Number(address.split(':')[1]), token };
    const trusting = await startEnvoy({ xds: { ...xds, tls } });
    await trusting.ready();
    expect(server.nodes()).toMatchObject([{ nodeId: 'n1', frontendId: 'west' }]);
    expect(suspiciousLines(trusting.process.output)).toEqual([]);

    const wary = await startEnvoy({ nodeId: 'n2', xds: { ...xds, tls: { ...tls, serverName: 'other' } } });
    await eventually('the certificate to be refused', async () => {
      return ((await wary.stat('cluster.wardrop-xds.ssl.fail_verify_san')) ?? 0) > 0;
    });
    expect(server.nodes()).toHaveLength(1);
  });
});
