import { expect, it } from 'vitest';
import { noEngineUsage } from '../../../wire/usage-report.js';
import type { Fleet } from '../../fleet/fleet.js';
import { ReadinessWatch } from './readiness-watch.js';

const [A, B, C] = ['10.0.0.1:80', '10.0.0.2:80', '10.0.0.3:80'];

function fleetOf(endpoints: Readonly<Record<string, readonly string[]>>): Fleet {
  const engines = Object.entries(endpoints).map(([id, addresses]) => ({ id, endpoints: addresses }));
  return { engines, pools: [{ id: 'm', engineIds: Object.keys(endpoints) }] } as unknown as Fleet;
}

it('a replica that comes to another engine is not stuck for what that has ended before', () => {
  const watch = new ReadinessWatch();
  const before = fleetOf({ e: [A, B], f: [C] });
  const end = (engineId: string, ended: number, nowMs: number) =>
    watch.addUsage(engineId, { ...noEngineUsage(1n, 2n), ended, wholeCount: ended }, nowMs);
  const stuck = (fleet: Fleet, inFlight: number, nowMs: number) => [
    ...watch.evaluate(fleet, () => false, new Map([[A, inFlight]]), nowMs).stuck.keys(),
  ];
  for (let ms = 0; ms < 60_000; ms += 1_000) watch.addEnded(A, 10, ms - 1_000, ms);
  end('e', 10, 60_000);
  end('f', 10_000, 60_000);
  expect(stuck(before, 10, 60_000)).toEqual([]);
  const after = fleetOf({ e: [B], f: [C, A] });
  watch.reconfigure(before, after);
  for (let ms = 61_000; ms < 70_000; ms += 1_000) expect(stuck(after, 60, ms)).toEqual([]);
});
