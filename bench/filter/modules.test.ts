import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { filterModule } from '../../simulator/filter-host/build.js';
import { countCalls, loadFilter } from './modules.js';

it('a request makes the host calls that the documentation gives reasons for, and no others', () => {
  const text = readFileSync(new URL('../../docs/filter-cost.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| `proxy_(\w+)` +\| (\d+) +\|/gm)];
  const documented = Object.fromEntries(rows.map(([, name, times]) => [`proxy_${name}`, Number(times)]));
  expect(countCalls(loadFilter(true, filterModule()))).toEqual(documented);
});
