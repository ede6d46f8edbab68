import { Gauge, Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { type Family, familiesText, gauge } from './family.js';

const NAMES = ['peer', 'kind'] as const;
const SAMPLES = [
  [{ peer: 'a:1', kind: 'x' }, 1.5],
  [{ peer: 'quotes " and \\ and \n', kind: '' }, Number.NaN],
  [{ peer: 'b', kind: 'y' }, Number.POSITIVE_INFINITY],
  [{ peer: 'c', kind: 'y' }, Number.NEGATIVE_INFINITY],
  [{ peer: 'd', kind: 'y' }, 1e21],
] as const;

it('is written as prom-client writes it, however odd labels and values are', async () => {
  const registry = new Registry();
  const families: Family[] = [];
  const add = (
    name: string,
    labelNames: readonly ('peer' | 'kind')[],
    samples: readonly (readonly [object, number])[],
  ) => {
    const help = 'What \\ this\nis.';
    const own = new Gauge({ name, help, labelNames, registers: [registry] });
    for (const [labels, value] of samples) own.set(labels, value);
    gauge(families, name, help, labelNames, () => samples as never);
  };
  add('several', NAMES, SAMPLES);
  add('none', NAMES, []);
  add('one', [], [[{}, 7]]);
  add('unknown', [], []);
  expect([...familiesText(families)].join('')).toBe(`\n${await registry.metrics()}`);
});
