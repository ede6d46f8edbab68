// The door of `npm test`, `npm run demo` and the others on a fresh clone: installs and builds what is missing, then
// runs the thing itself. Uses nothing but Node's own modules until the packages are there.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { removeStale } from './stale.mjs';

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const OLDEST_NODE = [20, 19];

/** Benchmarks that need an Envoy. */
const benchesOnEnvoy = new Set(['filter', 'xds']);

const commands = { build, demo, test, lint, bench, compare };

async function main([name, ...args]) {
  const command = commands[name];
  if (!command) fail(`usage: node scripts/run.mjs ${Object.keys(commands).join('|')} [arguments]`);
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
    fail(`Node ${OLDEST_NODE.join('.')} or later is needed, this is ${process.versions.node}`);
  }
  await installPackages();
  await command(args);
}

async function installPackages() {
  if (hasPackages()) return;
  console.error('installing npm packages …');
  await run('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error']);
}

/** Whether npm has noted that it installed what package-lock.json asks for. */
function hasPackages() {
  const noted = join(ROOT, 'node_modules', '.package-lock.json');
  if (!existsSync(noted)) return false;
  const packagesOf = (file) => JSON.parse(readFileSync(file, 'utf8')).packages;
  const installed = packagesOf(noted);
  return Object.entries(packagesOf(join(ROOT, 'package-lock.json'))).every(
    // What is optional may be for other machines; the package at '' is this one.
    ([path, { version, optional }]) => path === '' || optional || installed[path]?.version === version,
  );
}

async function build() {
  await run('node', ['scripts/generate-protos.mjs']);
  await run(bin('tsc'), ['-p', 'tsconfig.json']);
  removeStale(ROOT);
  mkdirSync(join(ROOT, 'dist', 'filter'), { recursive: true });
  await run(bin('asc'), ['--config', 'asconfig.json', '--target', 'release']);
  await run('node', ['dist/simulator/filter-host/hint-filter.js', 'dist/filter/wardrop.wasm']);
}

async function lint() {
  await run(bin('biome'), ['ci', '--error-on-warnings', '.']);
}

async function demo(args) {
  await build();
  process.exitCode = await spawned('node', ['dist/simulator/demo/main.js', ...args], {
    ENVOY_BIN: await envoy(),
  });
}

async function test(args) {
  await build();
  await lint();
  const binary = await envoy();
  const results = join(ROOT, 'dist', 'test-results.json');
  rmSync(results, { force: true });
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${results}`];
  const status = await spawned(bin('vitest'), ['run', ...reporters, ...args], { ENVOY_BIN: binary });
  if (existsSync(results)) {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(results, 'utf8'));
    console.log(`${numPassedTests} passed, ${numFailedTests} failed`);
  }
  process.exitCode = status;
}

async function bench(args) {
  const [name, ...rest] = args;
  const names = readdirSync(join(ROOT, 'bench')).filter((each) =>
    existsSync(join(ROOT, 'bench', each, 'main.ts')),
  );
  if (!names.includes(name)) {
    fail(`usage: npm run bench -- NAME [--quick] [--json FILE], where NAME is one of ${names.join(', ')}`);
  }
  await build();
  process.exitCode = await spawned(
    'node',
    [join('dist', 'bench', name, 'main.js'), ...rest],
    benchesOnEnvoy.has(name) ? { ENVOY_BIN: await envoy() } : {},
  );
}

async function compare(args) {
  await build();
  const env = args.includes('--validate') ? { ENVOY_BIN: await envoy() } : {};
  process.exitCode = await spawned('node', ['dist/simulator/experiments/compare.js', ...args], env);
}

async function envoy() {
  const { ensureEnvoy } = await import('./envoy.mjs');
  try {
    return await ensureEnvoy(console.error);
  } catch (error) {
    return fail(error.message);
  }
}

function bin(name) {
  return join(ROOT, 'node_modules', '.bin', name);
}

/** Runs to the end and stops everything when it fails. */
async function run(command, args) {
  const status = await spawned(command, args);
  if (status !== 0) process.exit(status);
}

/** Exit status of a command that shares our terminal. Signals are passed on; it cleans up and decides the status. */
function spawned(command, args, env = {}) {
  const child = spawn(command, args, { cwd: ROOT, stdio: 'inherit', env: { ...process.env, ...env } });
  const forward = (signal) => child.kill(signal);
  const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
  for (const signal of signals) process.on(signal, forward);
  return new Promise((resolve) => {
    child.once('error', (error) => fail(`cannot run ${command}: ${error.message}`));
    child.once('exit', (status, signal) => {
      for (const name of signals) process.off(name, forward);
      resolve(status ?? 128 + constants.signals[signal]);
    });
  });
}

function fail(message) {
  console.error(message);
  process.exit(2);
}

await main(process.argv.slice(2));
