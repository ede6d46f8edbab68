import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const SERVER = fileURLToPath(new URL('../../xds-server/', import.meta.url));

/** Each folder, and the files beside them, may import what stands before it; those of one line know nothing of each other. */
const ORDER = [
  ['collections', 'errors', 'gen', 'percent'],
  ['listen-error', 'fleet'],
  ['profiles'],
  ['config'],
  ['signals', 'optimizer'],
  ['plan'],
  ['peers'],
  ['xds', 'sync'],
  ['control'],
  ['admin'],
  ['control-server'],
  ['cli'],
];

const rankOf = (place: string) => ORDER.findIndex((line) => line.includes(place));

/** The folder of a file, or its name where it is in none. */
function placeOf(file: string): string {
  return relative(SERVER, file)
    .split('/')[0]!
    .replace(/\.[jt]s$/, '');
}

it('data goes one way through the folders of the control server, and so do imports', () => {
  const files = readdirSync(SERVER, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts') && !name.startsWith('gen/'))
    .map((name) => join(SERVER, name));
  expect(files.filter((file) => rankOf(placeOf(file)) < 0)).toEqual([]);
  const backwards = files.flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/ from '(\.[^']+)'/g)]
      .map(([, path]) => join(dirname(file), path!))
      .filter((target) => target.startsWith(SERVER) && placeOf(target) !== placeOf(file))
      .filter((target) => rankOf(placeOf(target)) >= rankOf(placeOf(file)))
      .map((target) => `${relative(SERVER, file)} imports ${relative(SERVER, target)}`),
  );
  expect(backwards).toEqual([]);
});
