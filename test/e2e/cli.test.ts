import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import { freePorts } from '../free-ports.js';

const CLI = fileURLToPath(new URL('../../dist/xds-server/cli/main.js', import.meta.url));

describe('the command line', () => {
  it('ends quietly when its reader has seen enough', async () => {
    const script = '{ "$0" "$1" schema; echo "status $?" >&2; } | true';
    const { stderr } = await promisify(execFile)('sh', ['-c', script, process.execPath, CLI]);
    expect(stderr).toBe('status 0\n');
  });

  it('a control server that is asked to end while it starts ends in order, not in the midst of what it takes over', async () => {
    const [xds, sync, admin, peer, other] = await freePorts(5);
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-cli-'));
    const file = join(folder, 'fleet.yaml');
    const server = [
      ...[`xds: {listen: "127.0.0.1:${xds}"}`, `sync: {listen: "127.0.0.1:${sync}"}`],
      ...[`admin: {listen: "127.0.0.1:${admin}"}`, 'stateFile: state.json'],
      `peers: [{xds: "127.0.0.1:${other}", sync: "127.0.0.1:${peer}"}]`,
    ];
    const engine = '{id: a, region: r, models: [m], profile: p, endpoints: ["127.0.0.1:1"]}';
    const rest = `frontends: [{id: f, region: r}]\nengines: [${engine}]\nprofiles: {p: {requestsPerSecond: 10}}\n`;
    writeFileSync(file, `server: {${server.join(', ')}}\n${rest}`);
    // Another control server that does not answer: the start waits for it.
    const silent = createServer().listen(peer, '127.0.0.1');
    const child = spawn(process.execPath, [CLI, 'serve', '-c', file], { stdio: 'ignore' });
    const ended = once(child, 'exit');
    const [socket] = (await Promise.race([once(silent, 'connection'), ended])) as [Socket];
    child.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    socket.destroy();
    silent.close();
    rmSync(folder, { recursive: true });
  });
});
