import { expect, it } from 'vitest';
import { Figures } from './figures.js';
import type { Variant } from './variants.js';

const load = { port: 1, bodyBytes: 256, model: 'm', headers: {}, keyHeader: true };
const variants: Variant[] = [
  { name: 'none', floor: 'none', load },
  { name: 'filter', floor: 'none', load },
  { name: 'extProc', floor: 'none', load },
];
const figures = new Figures(
  {
    rounds: 3,
    cpuMicros: { none: [100, 200, 100], filter: [110, 210, 112], extProc: [160, 260, 160] },
    streamMicros: { none: [1100, 1200, 1100], filter: [1510, 1610, 1512], extProc: [1160, 1260, 1160] },
    p50Micros: { none: [400, 400, 400], filter: [420, 421, 419], extProc: [800, 800, 800] },
  },
  variants,
);

it('what a variant adds is the difference to the floor of the same round', () => {
  expect(figures.cpuMicros('filter').value).toBe(112);
  expect(figures.addedMicros('filter').value).toBe(10);
  expect(figures.addedMicros('none').value).toBe(0);
  expect(figures.addedP50Micros('filter').value).toBe(20);
});

it('a chunk costs what a streamed answer costs more than a whole one, divided by its chunks', () => {
  expect(figures.chunkMicros('filter').value).toBe(7);
  expect(figures.chunkMicros('none').value).toBe(5);
});

it('an advantage compares what both add', () => {
  expect(figures.advantage('cpuMicros', 'filter', 'extProc').value).toBe(6);
  expect(figures.advantage('p50Micros', 'filter', 'extProc').value).toBe(20);
});
