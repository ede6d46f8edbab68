import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { buildProgram } from '../../xds-server/cli/program.js';
import { loadConfig } from '../../xds-server/config/load.js';
import { errorCodes } from '../../xds-server/errors.js';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGES = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)];

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

/** As GitHub makes them of headings. */
function anchors(page: string): readonly string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

it.each(PAGES)('every link of %s to a file, or a heading of one, leads somewhere', (page) => {
  const targets = [...read(page).matchAll(/\]\(([^)]+)\)/g)].map(([, target]) => target!);
  const broken = targets.filter((target) => {
    if (/^https?:/.test(target)) return false;
    const [path, anchor] = target.split('#') as [string, string | undefined];
    const file = path === '' ? page : join(dirname(page), path);
    if (!existsSync(join(ROOT, file))) return true;
    return anchor !== undefined && !anchors(file).includes(anchor);
  });
  expect(broken).toEqual([]);
});

it('the manual has every command', () => {
  const manual = read('docs/operations.md');
  const names = buildProgram().commands.map((command) => command.name());
  expect(names).toContain('serve');
  expect(
    names.filter((name) => !manual.includes(`wardrop ${name}`) && !manual.includes(`\`${name}\``)),
  ).toEqual([]);
});

it('the manual has every alarm', () => {
  const names = readdirSync(join(ROOT, 'xds-server/control'), {
    recursive: true,
    encoding: 'utf8',
  }).filter((name) => name.endsWith('.ts'));
  const source = ['control-server.ts', ...names.map((name) => `control/${name}`)]
    .map((name) => read(`xds-server/${name}`))
    .join('\n');
  const kinds = new Set(
    [...source.matchAll(/alarms\.(?:set|raise)\(\s*'([a-z-]+)'/g)].map(([, kind]) => kind!),
  );
  expect(kinds).toContain('envoy-rejects');
  const manual = read('docs/operations.md');
  expect([...kinds].filter((kind) => !manual.includes(`| \`${kind}\` `))).toEqual([]);
});

it('the manual has every fate of requests that metrics count', () => {
  const source = read('xds-server/admin/metrics/usage.ts');
  const fates = [...source.matchAll(/\['(\w+)', '\w+'\]/g)].map(([, what]) => what!);
  expect(fates).toEqual(expect.arrayContaining(['offered', 'no_response']));
  const manual = read('docs/operations.md');
  expect(fates.filter((what) => !manual.includes(`\`${what}\``))).toEqual([]);
});

it('the manual has every path of the API', () => {
  const source = read('xds-server/admin/routes.ts');
  const paths = [...source.matchAll(/app\.(get|post)\('([^']+)'/g)].map(
    ([, method, path]) => `${method!.toUpperCase()} ${path}`,
  );
  expect(paths).toContain('GET /v1/fleet');
  const manual = read('docs/operations.md');
  expect(paths.filter((path) => !manual.includes(`| \`${path}`))).toEqual([]);
});

it('the manual has every code of an error', () => {
  const manual = read('docs/operations.md');
  expect(Object.keys(errorCodes).filter((code) => !manual.includes(`| \`${code}\` `))).toEqual([]);
});

it('the map of the code has every folder', () => {
  const map = read('docs/code.md');
  const folders = ['xds-server', 'filter', 'simulator', 'bench', 'test'].flatMap((part) =>
    readdirSync(join(ROOT, part), { withFileTypes: true }).filter((entry) => entry.isDirectory()),
  );
  expect(folders.length).toBeGreaterThan(40);
  expect(folders.map(({ name }) => name).filter((name) => !map.includes(`\`${name}/\``))).toEqual([]);
});

it('the configuration in README.md is valid, and nothing is to be warned of', () => {
  const [, yaml] = read('README.md').match(/```yaml\n([^`]+)```/)!;
  const { fleet, warnings } = loadConfig('fleet.yaml', () => yaml!);
  expect(fleet.pools.map(({ id }) => id)).toEqual(['llama-70b']);
  expect(warnings).toEqual([]);
});
