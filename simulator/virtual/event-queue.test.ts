import fc from 'fast-check';
import { expect, it } from 'vitest';
import { EventQueue } from './event-queue.js';

it('gives events by time, those of one time in the order they were added, also while others are added', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1 }), (delays) => {
      const queue = new EventQueue();
      const seen: { at: number; order: number }[] = [];
      let order = 0;
      const add = (at: number, next?: number) => {
        const mine = order++;
        queue.add(at, () => {
          seen.push({ at, order: mine });
          if (next !== undefined) add(at + next);
        });
      };
      for (const delay of delays) add(delay, delay);
      while (queue.nextAt < Number.POSITIVE_INFINITY) void queue.take()();
      expect(seen).toHaveLength(2 * delays.length);
      expect(seen).toEqual([...seen].sort((a, b) => a.at - b.at || a.order - b.order));
    }),
  );
});
