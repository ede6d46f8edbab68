import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const run = promisify(execFile);
/** Root of the package, from the folder that the build puts this file in. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SOURCES = join(ROOT, 'bench', 'filter', 'opponents');
const OUTPUT = join(ROOT, 'dist', 'opponents');

/** What could be built; the reason in place of what could not. */
export interface Opponents {
  /** Load generator, engines and picker: nothing is measured on Envoy without them. */
  readonly go: GoPrograms | Missing;
  readonly cFilters: CFilters | Missing;
}

/** Paths of the filters in C. */
export interface CFilters {
  /** Makes the same host calls as Wardrop's. */
  readonly same: string;
  /** Makes none. */
  readonly bare: string;
}

export interface GoPrograms {
  readonly loadGenerator: string;
  readonly engines: string;
  readonly picker: string;
}

export class Missing {
  readonly reason: string;

  constructor(reason: string) {
    this.reason = reason;
  }
}

/** Builds the opponents, quickly when nothing has changed. */
export async function buildOpponents(): Promise<Opponents> {
  mkdirSync(OUTPUT, { recursive: true });
  const [go, cFilters] = await Promise.all([buildGo(), buildC()]);
  return { go, cFilters };
}

async function buildGo(): Promise<GoPrograms | Missing> {
  try {
    await run('go', ['build', '-o', `${OUTPUT}/`, './...'], { cwd: join(SOURCES, 'go') });
  } catch (error) {
    return new Missing(
      explain(error, 'go', 'install Go 1.21 or later; it must be able to fetch modules once'),
    );
  }
  const program = (name: string) => join(OUTPUT, name);
  return { loadGenerator: program('loadgen'), engines: program('backend'), picker: program('epp') };
}

async function buildC(): Promise<CFilters | Missing> {
  try {
    return { same: await compileC('filter'), bare: await compileC('bare') };
  } catch (error) {
    return new Missing(explain(error, 'clang', 'install clang and lld (CLANG names another clang)'));
  }
}

async function compileC(name: string): Promise<string> {
  const source = join(SOURCES, 'wasm', `${name}.c`);
  const object = join(OUTPUT, `${name}.o`);
  const output = join(OUTPUT, `${name}.wasm`);
  const clang = process.env.CLANG || 'clang';
  await run(clang, ['--target=wasm32', '-O3', '-mbulk-memory', '-c', '-o', object, source]);
  // Linked without -O: clang would run whatever wasm-opt is on PATH, and npm puts one there that is not made for it.
  const linker = ['-Wl,--no-entry', '-Wl,--strip-all'];
  await run(clang, ['--target=wasm32', '-nostdlib', ...linker, '-o', output, object]);
  return output;
}

function explain(error: unknown, program: string, remedy: string): string {
  const { code, stderr, message } = error as NodeJS.ErrnoException & { stderr?: string };
  if (code === 'ENOENT') return `${program} is not installed: ${remedy}`;
  const lines = (stderr || message).trim().split('\n').slice(-5);
  return `${program} failed: ${remedy}\n${lines.map((line) => `    ${line}`).join('\n')}`;
}
