import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  closeSync,
  constants,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Alarm } from '../../xds-server/control/alarms/alarms.js';
import { freePorts } from '../free-ports.js';
import { eventually, START_TIMEOUT_MS } from './harness/process.js';

const CLI = fileURLToPath(new URL('../../dist/xds-server/cli/main.js', import.meta.url));

/** A configuration in a folder of its own. */
async function configured(...more: readonly string[]) {
  const [xds, sync, admin] = await freePorts(3);
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-cli-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'fleet.yaml');
  const server = [
    ...[`xds: {listen: "127.0.0.1:${xds}"}`, `sync: {listen: "127.0.0.1:${sync}"}`],
    ...[`admin: {listen: "127.0.0.1:${admin}"}`, 'stateFile: state.json'],
    ...more,
  ];
  const engine = '{id: a, region: r, models: [m], profile: p, endpoints: ["127.0.0.1:1"]}';
  const rest = `frontends: [{id: f, region: r}]\nengines: [${engine}]\nprofiles: {p: {requestsPerSecond: 10}}\n`;
  writeFileSync(file, `server: {${server.join(', ')}}\n${rest}`);
  return { folder, file, adminUrl: `http://127.0.0.1:${admin}` };
}

describe('the command line', () => {
  it('ends quietly when its reader has seen enough', async () => {
    const script = '{ "$0" "$1" schema; echo "status $?" >&2; } | true';
    const { stderr } = await promisify(execFile)('sh', ['-c', script, process.execPath, CLI]);
    expect(stderr).toBe('status 0\n');
  });

  it('says that what it prints has no room on its disk', async () => {
    const script = '"$0" "$1" schema > /dev/full; echo "status $?" >&2';
    const { stderr } = await promisify(execFile)('sh', ['-c', script, process.execPath, CLI]);
    expect(stderr).toBe(
      'error: standard output: no space left on device (WARDROP_OUTPUT_FAILED)\nstatus 1\n',
    );
  });

  it('a control server that is asked to end while it starts ends in order, not in the midst of what it takes over', async () => {
    const [peer, other] = await freePorts(2);
    const { file } = await configured(`peers: [{xds: "127.0.0.1:${other}", sync: "127.0.0.1:${peer}"}]`);
    // Another control server that does not answer: the start waits for it.
    const silent = createServer().listen(peer, '127.0.0.1');
    onTestFinished(() => void silent.close());
    const child = spawn(process.execPath, [CLI, 'serve', '-c', file], { stdio: 'ignore' });
    onTestFinished(() => void child.kill('SIGKILL'));
    const ended = once(child, 'exit');
    const [socket] = (await Promise.race([once(silent, 'connection'), ended])) as [Socket];
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    socket.destroy();
  });

  it('a control server whose log has no room on its disk serves, and ends when it is asked to', async () => {
    const { file, adminUrl } = await configured();
    const full = openSync('/dev/full', 'w');
    const server = await startServing(file, adminUrl, full);
    expect(await server.end()).toEqual([0, null]);
    closeSync(full);
  });

  it('a control server whose log nobody reads serves, and ends when it is asked to', async () => {
    const { folder, file, adminUrl } = await configured();
    const pipe = fullPipe(folder);
    const server = await startServing(file, adminUrl, pipe.writer);
    expect(await server.end()).toEqual([0, null]);
    for (const fd of [pipe.own, pipe.writer]) closeSync(fd);
  });

  it('a control server whose recording cannot be written serves, and an alarm tells', async () => {
    const { folder, file, adminUrl } = await configured();
    const record = ['--record', join(folder, 'nowhere', 'fleet.jsonl.gz')];
    const server = await startServing(file, adminUrl, 'ignore', record);
    const alarms = async () => (await (await fetch(`${adminUrl}/v1/alarms`)).json()) as { alarms: Alarm[] };
    await eventually('the alarm', async () => (await alarms()).alarms.some(({ id }) => id === 'recording'));
    const { message } = (await alarms()).alarms.find(({ id }) => id === 'recording')!;
    expect(message).toMatch(/^the recording has ended, until the next start: .*nowhere.*ENOENT/);
    expect(await server.end()).toEqual([0, null]);
  });

  it('what a log could not say while nobody read it follows as soon as somebody does, up to the end', async () => {
    const { folder, file, adminUrl } = await configured();
    const pipe = fullPipe(folder);
    const server = await startServing(file, adminUrl, pipe.writer);
    let text = '';
    await eventually('what was not said', async () => {
      text += readAll(pipe.own);
      return text.includes('a new plan is in force');
    });
    expect(await server.end()).toEqual([0, null]);
    expect(text + readAll(pipe.own)).toMatch(/configuration loaded(.|\n)*"stopped"\}\n$/);
    for (const fd of [pipe.own, pipe.writer]) closeSync(fd);
  });
});

/** A control server that has a plan and logs there; `end` asks it to end, and tells its exit code and signal. */
async function startServing(
  file: string,
  adminUrl: string,
  log: number | 'ignore',
  more: readonly string[] = [],
) {
  const args = [CLI, 'serve', '-c', file, ...more];
  const child = spawn(process.execPath, args, { stdio: ['ignore', log, 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  const ended = once(child, 'exit');
  await eventually('a plan', async () => (await fetch(`${adminUrl}/ready`)).ok, START_TIMEOUT_MS);
  const end = () => {
    child.kill('SIGTERM');
    return ended;
  };
  return { end };
}

/** A pipe that takes nothing more; whoever gets `writer` may make that one block. */
function fullPipe(folder: string): { readonly own: number; readonly writer: number } {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const own = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  untilItBlocks(() => writeSync(own, '\n'.repeat(4096)));
  untilItBlocks(() => writeSync(own, '\n'));
  return { own, writer };
}

/** What is in it now. */
function readAll(pipe: number): string {
  const buffer = Buffer.alloc(65_536);
  let text = '';
  untilItBlocks(() => {
    text += buffer.toString('utf8', 0, readSync(pipe, buffer));
  });
  return text;
}

/** Again and again. */
function untilItBlocks(step: () => void): void {
  try {
    for (;;) step();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
  }
}
