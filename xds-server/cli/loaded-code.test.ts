import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LoadedCode } from './loaded-code.js';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-code-'));
  write('entry.js', "import { a } from './a.js';\nimport { join } from 'node:path';\n");
  write('a.js', "export { b as a } from './b.js';\n");
  write('b.js', "import './a.js';\nexport const b = 1;\n");
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, text: string): void {
  writeFileSync(join(folder, name), text);
}

const load = () => new LoadedCode(pathToFileURL(join(folder, 'entry.js')));

it('takes for the same what was written again as it was', () => {
  const code = load();
  write('b.js', "import './a.js';\nexport const b = 1;\n");
  write('other.js', 'export const c = 1;\n');
  expect(() => code.check()).not.toThrow();
});

it('finds a change in whatever a module imports, and what is gone', () => {
  const changed = load();
  write('b.js', 'export const b = 2;\n');
  expect(() => changed.check()).toThrow(expect.objectContaining({ code: 'WARDROP_PROGRAM_CHANGED' }));
  const gone = load();
  rmSync(join(folder, 'b.js'));
  expect(() => gone.check()).toThrow('restart it');
});
