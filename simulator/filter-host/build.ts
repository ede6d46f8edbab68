import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { packageFile } from '../../xds-server/package-file.js';

const root = packageFile();
const output = join(root, 'dist', 'filter');

let loaded: { readonly atMs: number; readonly module: WebAssembly.Module } | undefined;

/**
 * The filter's module as `npm run build` has made it, or, where that is missing or older than its sources, built here; the same
 * object while it stays. What is built here has no branch hints, which change nothing but its speed, and a name of its own.
 */
export function filterModule(): WebAssembly.Module {
  const sources = [...sourcesIn('filter'), ...sourcesIn('wire'), join(root, 'asconfig.json')];
  const changedMs = Math.max(...sources.map(modified));
  const built = join(output, 'wardrop.wasm');
  const file = modified(built) < changedMs ? join(output, 'unhinted.wasm') : built;
  if (modified(file) < changedMs) compile(file, root, ['--config', 'asconfig.json', '--target', 'release']);
  const atMs = modified(file);
  if (loaded?.atMs !== atMs) loaded = { atMs, module: new WebAssembly.Module(readFileSync(file)) };
  return loaded.module;
}

/** Single files of the filter as a module of their own. */
export function partModule(name: string, ...sources: readonly string[]): WebAssembly.Module {
  const file = join(output, `${name}.wasm`);
  const neighbours = sources.flatMap((source) => sourcesIn(join('filter', dirname(source))));
  if (modified(file) < Math.max(...neighbours.map(modified))) {
    // From within the folder, so that the filter's own configuration is not found.
    const options = ['--runtime', 'stub', '-O3', '--enable', 'simd', '--disableWarning', '235'];
    compile(file, join(root, 'filter'), [...sources, ...options]);
  }
  return new WebAssembly.Module(readFileSync(file));
}

function compile(file: string, folder: string, args: readonly string[]): void {
  mkdirSync(output, { recursive: true });
  // Test files run side by side: each builds under a name of its own and puts the result in place at once.
  const temporary = join(output, `${process.pid}-${Date.now()}.wasm`);
  execFileSync(
    process.execPath,
    [join(root, 'node_modules', 'assemblyscript', 'bin', 'asc.js'), ...args, '--outFile', temporary],
    { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] },
  );
  renameSync(temporary, file);
}

function sourcesIn(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .map((name) => join(root, folder, name));
}

function modified(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}
