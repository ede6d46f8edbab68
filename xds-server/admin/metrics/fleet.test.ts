import { expect, it } from 'vitest';
import type { ShownServer } from '../shown-server.js';
import { type Family, familiesText } from './family.js';
import { registerFleet } from './fleet.js';

it('the demand of a frontend for a pool is that of all its classes, by where it comes from', () => {
  const of = { frontendId: 'west', poolId: 'm' };
  const demands = [
    { ...of, priority: 0, source: 'measured', requestsPerSecond: 5 },
    { ...of, priority: -1, source: 'measured', requestsPerSecond: 2 },
    { ...of, priority: -2, source: 'configured', requestsPerSecond: 1 },
  ];
  const families: Family[] = [];
  registerFleet({ view: { state: { demands } } } as unknown as ShownServer, families);
  const [demand] = families;
  expect([...familiesText([demand!])].join('').trim().split('\n').slice(2)).toEqual([
    'wardrop_demand_requests_per_second{frontend="west",pool="m",source="measured"} 7',
    'wardrop_demand_requests_per_second{frontend="west",pool="m",source="configured"} 1',
  ]);
});
