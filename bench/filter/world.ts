import { execFile, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { type Child, Children } from '../../simulator/demo/children.js';
import { READY_PATH } from '../../wire/names.js';
import { type Bootstrap, withOpponents } from './envoy-config.js';
import { FRONTEND, fleetConfig } from './fleet.js';
import type { CFilters, GoPrograms } from './opponents.js';
import { freePorts, type Ports } from './ports.js';

const CLI = fileURLToPath(new URL('../../xds-server/cli/main.js', import.meta.url));

/** Everything that runs: one Envoy with all variants on the first core; engines, pickers and control server on the second. */
export interface World {
  readonly ports: Ports;
  readonly envoyPid: number;
  readonly pickerPid: number;
  readonly jsonPickerPid: number;
  readonly loadCommand: readonly string[];
  /** Whether cores could be kept apart. */
  readonly pinned: boolean;
  /** Starts another Envoy, on any core, and waits until a URL of it answers. */
  startEnvoy(bootstrap: object, workers: number, readyUrl: string): Promise<Child>;
}

/** Starts everything, lets `use` measure, and leaves nothing behind, however it ends. */
export async function inWorld<T>(
  { loadGenerator, engines, picker }: GoPrograms,
  cFilters: CFilters | undefined,
  use: (world: World, ending: AbortSignal) => Promise<T>,
): Promise<T> {
  const envoyBinary = process.env.ENVOY_BIN;
  if (!envoyBinary) throw new Error('ENVOY_BIN is not set; `npm run bench` finds or fetches Envoy');
  const ports = await freePorts();
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-bench-'));
  const ending = new AbortController();
  const children = new Children(folder, (error) => ending.abort(error));
  const lastMoment = () => {
    children.killAll();
    rmSync(folder, { recursive: true, force: true });
  };
  const end = (signal: NodeJS.Signals) => ending.abort(new Error(`stopped by ${signal}`));
  process.once('exit', lastMoment);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, end);

  const pinned = canPin();
  const on = (core: number, command: string, ...args: string[]): [string, string[]] =>
    pinned ? ['taskset', ['-c', `${core}`, command, ...args]] : [command, args];
  const start = (name: string, [command, args]: [string, string[]]): Child =>
    children.start(name, command, args);
  const sockets = { headers: join(folder, 'headers.sock'), json: join(folder, 'json.sock') };
  const configFile = join(folder, 'fleet.yaml');
  const bootstrapFile = join(folder, 'envoy.json');
  const { signal } = ending;
  try {
    for (const first of ports.engines) {
      const args = ['-port', `${first}`, '-snap', `${first + 4}`];
      await start(`engines ${first}`, on(1, engines, ...args)).ready(`http://127.0.0.1:${first}/`, signal);
    }
    const pickerArgs = ['-port', `${ports.engines[0]}`, '-listen'];
    const plain = start('picker', on(1, picker, ...pickerArgs, sockets.headers, '-mode', 'headers'));
    const json = start(
      'json picker',
      on(1, picker, ...pickerArgs, sockets.json, '-mode', 'buffered', '-json'),
    );
    writeFileSync(configFile, stringify(fleetConfig(ports)));
    const control = start('control server', on(1, process.execPath, CLI, 'serve', '-c', configFile));
    await control.ready(`http://127.0.0.1:${ports.api}/ready`, signal);
    const dynamic = await bootstrapOf(configFile, ports);
    const complete = await bootstrapOf(configFile, ports, '--static');
    writeFileSync(
      bootstrapFile,
      JSON.stringify(withOpponents({ dynamic, complete }, ports, sockets, cFilters)),
    );
    const options = (workers: number) => [
      ...['--concurrency', `${workers}`, '--log-level', 'warning', '--disable-hot-restart'],
    ];
    const envoy = start('Envoy', on(0, envoyBinary, '-c', bootstrapFile, ...options(1)));
    await envoy.ready(`http://127.0.0.1:${ports.filter}${READY_PATH}`, signal);
    return await use(
      {
        ports,
        envoyPid: envoy.pid,
        pickerPid: plain.pid,
        jsonPickerPid: json.pid,
        loadCommand: pinned ? ['taskset', '-c', '1', loadGenerator] : [loadGenerator],
        pinned,
        async startEnvoy(bootstrap, workers, readyUrl) {
          const file = join(folder, 'small.json');
          writeFileSync(file, JSON.stringify(bootstrap));
          const another = start('small Envoy', [envoyBinary, ['-c', file, ...options(workers)]]);
          await another.ready(readyUrl, signal);
          return another;
        },
      },
      signal,
    );
  } finally {
    await children.stopAll();
    lastMoment();
    process.off('exit', lastMoment);
  }
}

async function bootstrapOf(configFile: string, ports: Ports, ...more: string[]): Promise<Bootstrap> {
  const options = ['--frontend', FRONTEND, '--admin', `127.0.0.1:${ports.envoyAdmin}`, '--format', 'json'];
  const args = [CLI, 'bootstrap', '-c', configFile, ...options, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, args, { maxBuffer: 1 << 24 });
  return JSON.parse(stdout) as Bootstrap;
}

function canPin(): boolean {
  if (availableParallelism() < 2) return false;
  try {
    execFileSync('taskset', ['-c', '1', 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
