import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Each folder, and the files beside them, may import what stands before it; those of one line know nothing of each other. */
type Order = readonly (readonly string[])[];

const FILTER: Order = [
  ['hash'],
  ['abi'],
  ['reasons'],
  ['body', 'state'],
  ['config', 'snapshot'],
  ['request'],
  ['sync'],
  ['index'],
];

const SERVER: Order = [
  [
    'bearer',
    'collections',
    'errors',
    'exact-json',
    'gen',
    'package-file',
    'percent',
    'steady-clock',
    'suggest',
  ],
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

const SIMULATOR: Order = [
  ['event-loop-lag', 'filter-host', 'fitted-profile', 'random', 'text-table'],
  ['engine'],
  ['load', 'calibration'],
  ['workloads'],
  ['benchmark', 'scenario'],
  ['policies'],
  ['virtual'],
  ['measures'],
  ['scenario-file'],
  ['demo'],
  ['validation'],
  ['experiments'],
];

/** What each part imports of others: the two sides meet in `wire`, which shares the catalogue of errors. */
const PARTS: Readonly<Record<string, readonly RegExp[]>> = {
  filter: [/^wire\//],
  wire: [/^xds-server\/errors\./],
  'xds-server': [/^wire\//],
  // Its command, and the host that runs the filter for `wardrop decide`.
  'xds-server/cli': [/^wire\//, /^simulator\//],
  simulator: [/^wire\//, /^xds-server\//],
};

interface Import {
  readonly from: string;
  readonly to: string;
}

/** Of all files of a folder but tests and what these use, as paths below the root. */
function importsOf(folder: string): readonly Import[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !/\.test\.ts$|^gen\/|(^|\/)testing\//.test(name))
    .flatMap((name) => {
      const from = join(folder, name);
      const imports = [...readFileSync(join(ROOT, from), 'utf8').matchAll(/ from '(\.[^']+)'/g)];
      return imports.map(([, path]) => ({ from, to: join(dirname(from), path!) }));
    });
}

it.each([
  ['filter', FILTER],
  ['xds-server', SERVER],
  ['simulator', SIMULATOR],
] as const)('data goes one way through the folders of %s, and so do imports', (part, order) => {
  const rankOf = (file: string) => {
    const place = relative(part, file).split('/')[0]!.replace(/\..*$/, '');
    return { place, rank: order.findIndex((line) => line.includes(place)) };
  };
  const inside = importsOf(part).filter(({ to }) => to.startsWith(`${part}/`));
  expect(inside.filter(({ from }) => rankOf(from).rank < 0)).toEqual([]);
  const backwards = inside.filter(({ from, to }) => {
    const [importer, imported] = [rankOf(from), rankOf(to)];
    return importer.place !== imported.place && imported.rank >= importer.rank;
  });
  expect(backwards).toEqual([]);
});

/** A way from one of these round to itself; undefined when there is none. */
function circle(edges: ReadonlyMap<string, ReadonlySet<string>>): readonly string[] | undefined {
  const done = new Set<string>();
  const visit = (place: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(place)) return [...way, place];
    if (done.has(place)) return undefined;
    for (const next of edges.get(place) ?? []) {
      const found = visit(next, [...way, place]);
      if (found !== undefined) return found;
    }
    done.add(place);
    return undefined;
  };
  for (const place of edges.keys()) {
    const found = visit(place, []);
    if (found !== undefined) return found;
  }
  return undefined;
}

const STAGES = ['filter', 'xds-server', 'simulator'].flatMap((part) =>
  readdirSync(join(ROOT, part), { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== 'gen')
    .map(({ name }) => `${part}/${name}`),
);

it.each(STAGES)('the folders and files of %s do not import each other in a circle', (stage) => {
  const edges = new Map<string, Set<string>>();
  const placeIn = (file: string) =>
    relative(stage, file)
      .split('/')[0]!
      .replace(/\.[tj]s$/, '');
  for (const { from, to } of importsOf(stage)) {
    const [importer, imported] = [placeIn(from), placeIn(to)];
    if (!to.startsWith(`${stage}/`) || importer === imported) continue;
    edges.set(importer, (edges.get(importer) ?? new Set()).add(imported));
  }
  expect(circle(edges)).toBeUndefined();
});

it.each(Object.entries(PARTS))('%s imports no part but those that it is made of', (part, allowed) => {
  const own = `${part.split('/')[0]}/`;
  const others = importsOf(part).filter(({ to }) => !to.startsWith(own));
  const inner = Object.keys(PARTS).filter((other) => other.startsWith(`${part}/`));
  const strange = others
    .filter(({ from }) => !inner.some((folder) => from.startsWith(`${folder}/`)))
    .filter(({ to }) => !allowed.some((pattern) => pattern.test(to)));
  expect(strange).toEqual([]);
});
