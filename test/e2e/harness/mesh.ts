import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import { freePorts } from '../../free-ports.js';
import { account } from './account.js';
import { type Condition, eventually, Process, START_TIMEOUT_MS } from './process.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const CLI = join(ROOT, 'dist', 'xds-server', 'cli', 'main.js');
const run = promisify(execFile);
/** What a control server logs that has met a fault of its own. */
const OWN_FAULT = 'a fault of the control server itself';

export interface MeshOptions {
  /** The `engines` section of the configuration. */
  readonly engines: readonly Record<string, unknown>[];
  /** Frontend ids with the round trip to each engine in milliseconds. */
  readonly rttMs: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Whether round trips are measured; false by default. */
  readonly measure?: boolean;
  readonly profiles: Readonly<Record<string, unknown>>;
  readonly demand: Readonly<Record<string, unknown>>;
  readonly policy?: Readonly<Record<string, unknown>>;
  readonly server?: Readonly<Record<string, unknown>>;
  /** Other sections of the configuration. */
  readonly config?: Readonly<Record<string, unknown>>;
  /** Files beside the configuration, by name. */
  readonly files?: Readonly<Record<string, string>>;
  /** Options of `wardrop serve`. */
  readonly serve?: readonly string[];
  /** Whether there is a second control server, `mesh.peer`; it is not started. */
  readonly hasPeer?: boolean;
}

/** An engine of the configuration, near the Envoys and like any other but for `rest`. */
export function engineEntry(
  id: string,
  endpoints: readonly string[],
  rest: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  return { id, region: 'west', models: ['demo-8b'], profile: 'stub', endpoints, ...rest };
}

/** Request and admin address of a running Envoy. */
export interface EnvoyHandle {
  readonly process: Process;
  readonly url: string;
  readonly adminUrl: string;
}

interface ServerPorts {
  readonly xds: number;
  readonly sync: number;
  readonly admin: number;
}

function serverPorts(ports: readonly number[]): ServerPorts {
  const [xds, sync, admin] = ports as [number, number, number];
  return { xds, sync, admin };
}

/** A control server and its Envoys, started by the public commands in a folder of their own. */
export class Mesh {
  /** Those that were started and not stopped. */
  static readonly running = new Set<Mesh>();
  readonly folder: string;
  readonly configFile: string;
  readonly adminUrl: string;
  readonly syncUrl: string;
  readonly envoys: EnvoyHandle[] = [];
  #peer: Mesh | undefined;
  readonly #serveOptions: readonly string[];
  #control: Process | undefined;

  private constructor(configFile: string, ports: ServerPorts, serveOptions: readonly string[] = []) {
    this.#serveOptions = serveOptions;
    this.folder = dirname(configFile);
    this.configFile = configFile;
    this.adminUrl = `http://127.0.0.1:${ports.admin}`;
    this.syncUrl = `http://127.0.0.1:${ports.sync}`;
  }

  /** Writes the configuration and starts the control server. */
  static async start(options: MeshOptions): Promise<Mesh> {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-e2e-'));
    const frontends = Object.keys(options.rttMs);
    const ports = await freePorts(6 + frontends.length);
    const [own, other] = [serverPorts(ports.slice(0, 3)), serverPorts(ports.slice(3, 6))];
    const write = (name: string, server: ServerPorts, peer: ServerPorts | undefined): Mesh => {
      const config = {
        server: {
          xds: { listen: `127.0.0.1:${server.xds}` },
          sync: { listen: `127.0.0.1:${server.sync}` },
          admin: { listen: `127.0.0.1:${server.admin}` },
          stateFile: `${name}-state.json`,
          ...(peer && { peers: [{ xds: `127.0.0.1:${peer.xds}`, sync: `127.0.0.1:${peer.sync}` }] }),
          ...options.server,
        },
        frontends: frontends.map((id, index) => ({
          id,
          region: id,
          listen: `127.0.0.1:${ports[6 + index]}`,
        })),
        engines: options.engines,
        // Most tests configure round trips that loopback does not have.
        network: { rttMs: options.rttMs, measure: options.measure ?? false },
        profiles: options.profiles,
        demand: options.demand,
        ...(options.policy ? { policy: options.policy } : {}),
        ...options.config,
      };
      const file = join(folder, `${name}.yaml`);
      writeFileSync(file, stringify(config));
      return new Mesh(file, server, options.serve);
    };
    const mesh = write('fleet', own, options.hasPeer ? other : undefined);
    if (options.hasPeer) mesh.#peer = write('peer', other, own);
    for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(folder, name), text);
    try {
      await mesh.startControlServer();
    } catch (error) {
      await mesh.stop();
      throw error;
    }
    return mesh;
  }

  get control(): Process {
    if (!this.#control) throw new Error('the control server was not started');
    return this.#control;
  }

  /** The second control server, with the same Envoys, engines and folder. */
  get peer(): Mesh {
    if (!this.#peer) throw new Error('there is no second control server');
    return this.#peer;
  }

  async startControlServer(): Promise<void> {
    const control = new Process('control server', process.execPath, [
      ...[CLI, 'serve', '-c', this.configFile],
      ...this.#serveOptions,
    ]);
    this.#control = control;
    Mesh.running.add(this);
    await this.eventually(
      'the control server to be ready',
      async () => {
        if (!control.running) throw new Error('the control server ended');
        return (await fetch(`${this.adminUrl}/ready`)).ok;
      },
      START_TIMEOUT_MS,
    );
  }

  /** Runs a command of the program to its end. */
  async runCommand(args: readonly string[]): Promise<{ code: number | null; stderr: string }> {
    try {
      const { stderr } = await run(process.execPath, [CLI, ...args], { timeout: START_TIMEOUT_MS });
      return { code: 0, stderr };
    } catch (error) {
      const { code, stderr } = error as { code: number | null; stderr: string };
      return { code, stderr };
    }
  }

  /** Starts an Envoy of this frontend from `wardrop bootstrap` and waits until its filter is ready. */
  async startEnvoy(
    frontend: string,
    options: { concurrency?: number; listen?: string; bootstrap?: readonly string[] } = {},
  ): Promise<EnvoyHandle> {
    const [admin] = await freePorts(1);
    const listenOption = options.listen ? ['--listen', options.listen] : [];
    const args = [
      'bootstrap',
      '-c',
      this.configFile,
      '--frontend',
      frontend,
      '--admin',
      `127.0.0.1:${admin}`,
    ];
    const bootstrap = await this.wardrop(...args, ...listenOption, ...(options.bootstrap ?? []));
    const file = join(this.folder, `envoy-${frontend}-${admin}.yaml`);
    writeFileSync(file, bootstrap);
    const envoy = new Process(`envoy ${frontend}`, envoyBinary(), [
      ...['-c', file, '--concurrency', String(options.concurrency ?? 1)],
      ...['--disable-hot-restart', '--log-level', 'warning'],
    ]);
    const listen = options.listen ?? listenOf(this.configFile, frontend);
    const handle = { process: envoy, url: `http://${listen}`, adminUrl: `http://127.0.0.1:${admin}` };
    this.envoys.push(handle);
    await this.eventually(
      `the Envoy of ${frontend} to be ready`,
      async () => {
        if (!envoy.running) throw new Error('Envoy ended');
        return (await fetch(`${handle.url}/wardrop/ready`)).ok;
      },
      START_TIMEOUT_MS,
    );
    return handle;
  }

  /** What a command prints; it fails with the command. */
  async wardrop(...args: string[]): Promise<string> {
    return (await run(process.execPath, [CLI, ...args])).stdout;
  }

  /** JSON of the control server's API. */
  async api<T>(path: string): Promise<T> {
    const response = await fetch(`${this.adminUrl}${path}`);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** Polls until the condition holds; the error says what the control server thinks. */
  eventually<T>(what: string, condition: Condition<T>, timeoutMs?: number): Promise<T> {
    return eventually(what, condition, timeoutMs, () => this.account());
  }

  /** What the control server says of itself. */
  account(): Promise<string> {
    return account(this.adminUrl, this.#processes);
  }

  /** For how long its processes were ready to run while the machine was busy with others, all together. */
  get waitedMs(): number {
    return this.#processes.reduce((sum, { waitedMs }) => sum + waitedMs, 0);
  }

  get #processes(): readonly Process[] {
    return [...(this.#control ? [this.#control] : []), ...this.envoys.map(({ process }) => process)];
  }

  async stop(): Promise<void> {
    Mesh.running.delete(this);
    const stopped = await Promise.allSettled([
      ...this.#processes.map((process) => process.stop()),
      this.#peer?.stop(),
    ]);
    rmSync(this.folder, { recursive: true, force: true });
    for (const each of stopped) if (each.status === 'rejected') throw each.reason;
    const fault = this.#control?.output.split('\n').find((line) => line.includes(OWN_FAULT));
    if (fault !== undefined) throw new Error(fault);
  }
}

/** Lines of Envoy's log that no healthy run has: unknown or deprecated fields, rejected updates, failed VMs. */
export function suspiciousLines(log: string): string[] {
  const suspicious = /unknown field|deprecated|rejected|\[critical\]|\[error\]|wasm.*(fail|trap|crash)/i;
  // The filter's own log may say that a call failed; that is its duty while the control server is away.
  const own = /wasm log wardrop/;
  return log.split('\n').filter((line) => suspicious.test(line) && !own.test(line));
}

function envoyBinary(): string {
  const binary = process.env.ENVOY_BIN;
  if (!binary)
    throw new Error('ENVOY_BIN is not set; run the tests by `npm test`, which finds or fetches Envoy');
  return binary;
}

function listenOf(configFile: string, frontend: string): string {
  const config = parse(readFileSync(configFile, 'utf8')) as { frontends: { id: string; listen: string }[] };
  const found = config.frontends.find((entry) => entry.id === frontend);
  if (!found) throw new Error(`no frontend ${frontend}`);
  return found.listen;
}
