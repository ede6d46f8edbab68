import { expect, it } from 'vitest';
import { residentIn } from './resident-memory.js';

it('resident memory is read from the status of a process, in KiB', () => {
  const status = 'Name:\tenvoy\nVmPeak:\t  99999 kB\nVmRSS:\t   61234 kB\nRssAnon:\t   40000 kB\n';
  expect(residentIn(status)).toBe(61_234);
});
