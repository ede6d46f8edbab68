import { describe, expect, it } from 'vitest';
import type { LoadName } from '../../../wire/usage-report.js';
import { loadAt, requestsAt, requestsAtReplica } from './engine-load.js';
import { ReplicaReading } from './replica-reading.js';

const A = '10.0.0.1:80';
const B = '10.0.0.2:80';

/** A page that was read at these times and says the same each time. */
function page(atMs: readonly number[], running: number, waiting: number): ReplicaReading {
  const reading = new ReplicaReading(['running', 'waiting']);
  for (const each of atMs) {
    reading.accept(
      new Map([
        ['running', { value: running, source: 'r' }],
        ['waiting', { value: waiting, source: 'w' }],
      ]),
      each,
    );
  }
  return reading;
}

function responses(atMs: number, values: Partial<Record<LoadName, number>>) {
  const readings = new Map(
    Object.entries(values).map(([name, value]) => [name as LoadName, { value: value!, atMs }]),
  );
  return (address: string) =>
    address === A ? { engineId: 'a', address, reports: 1, garbled: 0, readings } : undefined;
}

describe('the requests at a replica', () => {
  it('are those of its page while that is fresh, whatever its responses say and however often', () => {
    const pages = new Map([[A, page([0, 2_000, 4_000], 1, 0)]]);
    for (let nowMs = 0; nowMs <= 10_000; nowMs += 500) {
      const sources = { pages, responses: responses(nowMs, { running: 90, waiting: 9 }) };
      expect(requestsAtReplica(A, sources, nowMs)).toEqual({ requests: 1, waiting: 0, source: 'page' });
    }
  });

  it('are those of its responses where there is no page, or an old one, while they are fresh', () => {
    const reported = responses(20_000, { running: 7, waiting: 2 });
    for (const pages of [new Map(), new Map([[A, page([0], 1, 0)]])]) {
      const sources = { pages, responses: reported };
      expect(requestsAtReplica(A, sources, 26_000)).toEqual({ requests: 9, waiting: 2, source: 'responses' });
      expect(requestsAtReplica(A, sources, 26_001)).toBeUndefined();
    }
  });

  it('are never added up from two sources', () => {
    const pages = new Map([[A, new ReplicaReading(['running'])]]);
    pages.get(A)!.accept(new Map([['running', { value: 5, source: 'r' }]]), 0);
    expect(requestsAtReplica(A, { pages, responses: responses(0, { waiting: 3 }) }, 0)).toBeUndefined();
  });

  it('are unknown of several as long as they are of one', () => {
    const pages = new Map([[A, page([0], 4, 1)]]);
    const sources = { pages, responses: () => undefined };
    expect(requestsAt([A], sources, 0)).toBe(5);
    expect(requestsAt([A, B], sources, 0)).toBeUndefined();
    pages.set(B, page([0], 2, 0));
    expect(requestsAt([A, B], sources, 0)).toBe(7);
    expect(loadAt([A, B], sources, 0)).toEqual({ requests: 7, leastWaiting: 0 });
  });
});
