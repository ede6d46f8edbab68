import { readFileSync } from 'node:fs';
import { packageFile } from '../package-file.js';
import { UsageError } from './usage-error.js';

export function packageVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile('package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

/** The compiled filter. */
export function readWasmModule(): Uint8Array {
  const file = packageFile('dist', 'filter', 'wardrop.wasm');
  try {
    return readFileSync(file);
  } catch {
    throw new UsageError(`the filter is not built: ${file} is missing; run npm run build`, 1);
  }
}
