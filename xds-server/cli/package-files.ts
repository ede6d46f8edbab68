import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UsageError } from './usage-error.js';

/** Root of the installed package: the nearest folder above this file that has its package.json. */
function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) {
    const parent = dirname(folder);
    if (parent === folder) throw new Error('this installation has no package.json');
    folder = parent;
  }
  return folder;
}

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

/** The compiled filter. */
export function readWasmModule(): Uint8Array {
  const file = join(packageRoot(), 'dist', 'filter', 'wardrop.wasm');
  try {
    return readFileSync(file);
  } catch {
    throw new UsageError(`the filter is not built: ${file} is missing; run npm run build`, 1);
  }
}
