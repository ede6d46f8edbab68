import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { READY_PATH } from '../../wire/names.js';
import { suspiciousLines } from '../e2e/harness/mesh.js';
import { envoyBinary } from './envoy/envoy.js';
import { printed } from './printed.js';

interface Container {
  readonly name: string;
  readonly args: string[];
  readonly lifecycle?: { readonly preStop: { readonly exec: { readonly command: string[] } } };
  readonly volumeMounts: { readonly name: string; readonly mountPath: string }[];
  readonly readinessProbe?: { readonly httpGet: { readonly path: string; readonly port: number } };
}
interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels?: object };
  readonly data?: Readonly<Record<string, string>>;
  readonly stringData?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly replicas?: number;
    readonly serviceName?: string;
    readonly volumeClaimTemplates?: { readonly metadata: { readonly name: string } }[];
    readonly selector?: Readonly<Record<string, string>> & { readonly matchLabels?: object };
    readonly template?: {
      readonly metadata: { readonly labels: object };
      readonly spec: {
        readonly initContainers?: Container[];
        readonly containers: Container[];
        readonly volumes: { readonly name: string }[];
      };
    };
  };
}

const run = promisify(execFile);
const text = readFileSync(new URL('../../envoy/kubernetes/wardrop.yaml', import.meta.url), 'utf8');
const manifests = parseAllDocuments(text).map((document) => {
  expect(document.errors).toEqual([]);
  return document.toJS() as Manifest;
});
const named = (kind: string, name: string) =>
  manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name === name)!;
const folder = mkdtempSync(join(tmpdir(), 'wardrop-kubernetes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Files as the pods have them, in a folder of the test. */
const local = (command: string) =>
  command.replaceAll('/etc/wardrop-token', folder).replaceAll('/etc/wardrop', folder);
const configFile = join(folder, 'fleet.yaml');
writeFileSync(configFile, local(named('ConfigMap', 'wardrop').data!['fleet.yaml']!));
writeFileSync(join(folder, 'token'), named('Secret', 'wardrop-token').stringData!.token!);

it('the configuration in the manifest is valid', async () => {
  expect(await printed('validate', '-c', configFile)).toContain('1 frontend, 1 engine, 1 pool, 1 profile');
});

it('the bootstrap that its pods print is valid for Envoy, with the token', async () => {
  const [bootstrap] = named('Deployment', 'frontend-west').spec!.template!.spec.initContainers!;
  const [command, target] = local(bootstrap!.args[0]!)
    .replace('$(POD_NAME)', 'frontend-west-1')
    .replace('wardrop ', '')
    .replaceAll('"', '')
    .split(' >');
  const bootstrapText = await printed(...command!.split(' '));
  expect(bootstrapText).toContain('Bearer replace-me-by-a-secret-one');
  const { replicas, serviceName } = named('StatefulSet', 'wardrop').spec!;
  const hosts = [...bootstrapText.matchAll(/address: (\S+)\.wardrop\.svc\.cluster\.local$/gm)].map(
    ([, host]) => host,
  );
  const pods = Array.from({ length: replicas! }, (_, pod) => `wardrop-${pod}.${serviceName}`);
  expect(hosts).toEqual([...pods, ...pods]);
  const file = join(folder, 'envoy.yaml');
  writeFileSync(file, bootstrapText);
  const { stderr } = await run(await envoyBinary(), [
    '--mode',
    'validate',
    '--log-level',
    'warning',
    '-c',
    file,
  ]);
  expect(suspiciousLines(stderr)).toEqual([]);
  const { args } = named('Deployment', 'frontend-west').spec!.template!.spec.containers[0]!;
  expect(args).toContain(target);
});

it('selectors find pods, mounts have volumes, and Envoy is ready when its filter is', () => {
  const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  expect(workloads).toHaveLength(2);
  for (const { spec } of workloads) {
    const { metadata, spec: pod } = spec!.template!;
    expect(metadata.labels).toEqual(spec!.selector!.matchLabels);
    const claims = (spec!.volumeClaimTemplates ?? []).map(({ metadata: { name } }) => name);
    const volumes = [...pod.volumes.map(({ name }) => name), ...claims];
    for (const { volumeMounts } of [...(pod.initContainers ?? []), ...pod.containers]) {
      for (const { name } of volumeMounts) expect(volumes).toContain(name);
    }
  }
  for (const { spec } of manifests.filter(({ kind }) => kind === 'Service')) {
    expect(workloads.map((workload) => workload.spec!.template!.metadata.labels)).toContainEqual(
      spec!.selector,
    );
  }
  const [envoy] = named('Deployment', 'frontend-west').spec!.template!.spec.containers;
  expect(envoy!.readinessProbe!.httpGet).toEqual({ path: READY_PATH, port: 8080 });
});

it('an Envoy that is to stop sends clients elsewhere and waits for the requests that it has', async () => {
  const asked: string[] = [];
  const active = [2, 1, 0];
  const admin = createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`);
    response.end(method === 'GET' ? `http.wardrop.downstream_rq_active: ${active.shift()}\n` : 'OK\n');
  });
  await new Promise<void>((resolve) => admin.listen(0, '127.0.0.1', resolve));
  const [envoy] = named('Deployment', 'frontend-west').spec!.template!.spec.containers;
  const [shell, ...rest] = envoy!.lifecycle!.preStop.exec.command;
  const script = rest
    .pop()!
    .replace('127.0.0.1/9901', `127.0.0.1/${(admin.address() as AddressInfo).port}`)
    .replaceAll(/sleep \d+/g, 'sleep 0');
  await run(shell!, [...rest, script]);
  admin.close();
  const ask = 'GET /stats?filter=^http.wardrop.downstream_rq_active';
  expect(asked).toEqual(['POST /healthcheck/fail', ask, ask, ask]);
});
