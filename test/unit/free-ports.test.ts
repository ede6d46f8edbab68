import { expect, it } from 'vitest';
import { freePorts } from '../free-ports.js';

it('a port is drawn once, as long as those run who draw', async () => {
  const drawn: number[] = [];
  // Of 8,000 ports, 300 that are drawn independently are nearly never all different.
  for (let at = 0; at < 100; at++) drawn.push(...(await freePorts(3)));
  expect(new Set(drawn).size).toBe(300);
});
