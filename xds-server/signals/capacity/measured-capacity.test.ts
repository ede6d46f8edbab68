import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CapacityLook } from './capacity-look.js';
import { MeasuredCapacity } from './measured-capacity.js';

const usual: CapacityLook = {
  seconds: 5,
  answers: 1_000,
  knowsCache: false,
  doneRho: 1,
  mostRho: 1,
  heldRho: 0.98,
  isFull: true,
};

function full(doneRho: number, change: Partial<CapacityLook> = {}): CapacityLook {
  return { ...usual, doneRho, mostRho: doneRho, ...change };
}

/** An engine of this share of its profile's capacity that gets so much done without being full. */
function withRoom(share: number, doneRho = 0.6): CapacityLook {
  return { ...usual, doneRho, mostRho: doneRho, heldRho: doneRho / share, isFull: false };
}

/** Looks once a second, both ends included. */
function look(
  capacity: MeasuredCapacity,
  at: CapacityLook | undefined,
  from: number,
  to: number,
  isUsual = true,
): number {
  for (let second = from; second <= to; second++) capacity.accept(at, isUsual, second * 1_000);
  return capacity.share;
}

describe('a correction', () => {
  it('is less by what other sizes of requests explain of it, and never more', () => {
    for (const [share, factor, left] of [
      [0.5, 1.5, 0.75],
      [0.5, 8, 1],
      [0.5, 0.5, 0.5],
      [1.25, 0.8, 1],
      [1.25, 2, 1.25],
      [1, 3, 1],
      [0.5, Number.NaN, 0.5],
    ] as const) {
      const capacity = new MeasuredCapacity();
      capacity.resume(share, 1_000);
      capacity.explain(factor);
      expect(capacity.share).toBe(left);
      expect(capacity.sinceMs).toBe(left === 1 ? undefined : 1_000);
    }
  });

  it('does not follow from what was seen before the sizes of requests were known', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.7), 0, 2);
    capacity.explain(1.4);
    expect(look(capacity, full(0.7), 3, 5)).toBe(1);
  });
});

describe('the capacity of a full engine', () => {
  it('is what it gets done, once it has been full for three seconds', () => {
    const capacity = new MeasuredCapacity();
    expect(look(capacity, full(0.7), 0, 2)).toBe(1);
    expect(look(capacity, full(0.7), 3, 3)).toBe(0.7);
    expect(capacity.sinceMs).toBe(3_000);
  });

  it('is the best of that time, as the first seconds of a queue still fill it', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.6), 0, 1);
    look(capacity, full(0.75), 2, 2);
    expect(look(capacity, full(0.7), 3, 3)).toBe(0.75);
  });

  it('is left alone where few answers leave it in doubt', () => {
    expect(look(new MeasuredCapacity(), full(0.9), 0, 60)).toBe(1);
    expect(look(new MeasuredCapacity(), full(0.8, { answers: 50 }), 0, 60)).toBe(1);
    expect(look(new MeasuredCapacity(), full(0.7, { answers: 50 }), 0, 60)).toBe(0.7);
  });

  it('is not told by an engine that answers nothing', () => {
    expect(look(new MeasuredCapacity(), full(0, { answers: 0 }), 0, 60)).toBe(1);
  });

  it('does not fall for prompts that moved away from their caches, known or only likely', () => {
    expect(look(new MeasuredCapacity(), full(0.7, { mostRho: 1 }), 0, 60)).toBe(1);
    expect(look(new MeasuredCapacity(), full(0.7), 0, 60, false)).toBe(1);
    expect(look(new MeasuredCapacity(), full(0.7, { knowsCache: true }), 0, 60, false)).toBe(0.7);
  });

  it('follows what the engine gets done, but for little changes', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.7), 0, 3);
    expect(look(capacity, full(0.74), 4, 20)).toBe(0.7);
    expect(look(capacity, full(0.8), 21, 30)).toBe(0.8);
    expect(look(capacity, full(0.6), 31, 40)).toBe(0.6);
    expect(look(capacity, full(1.04), 41, 50)).toBe(1);
    expect(capacity.sinceMs).toBeUndefined();
  });

  it('is never less than a tenth', () => {
    expect(look(new MeasuredCapacity(), full(0.4), 0, 60)).toBe(0.4);
    expect(look(new MeasuredCapacity(), full(0.01), 0, 60)).toBe(0.1);
  });

  it('is at least what it surely gets done, full or not', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.2), 0, 3);
    expect(look(capacity, withRoom(0.9, 0.5), 4, 4)).toBeGreaterThan(0.45);
  });
});

describe('what an engine surely got done over a short time', () => {
  it('raises it at once, before longer looks show it, but not from before it was lowered', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.1), 20, 23);
    const slowYet = full(0.15, { seconds: 16, answers: 60 });
    capacity.accept(slowYet, true, 24_000, { slowness: 1.25, sinceMs: 14_000 });
    expect(capacity.share).toBe(0.1);
    capacity.accept(slowYet, true, 30_000, { slowness: 1.25, sinceMs: 24_000 });
    expect(capacity.share).toBeCloseTo(0.8);
    capacity.accept(undefined, true, 31_000, { slowness: 1, sinceMs: 25_000 });
    expect(capacity.share).toBeCloseTo(0.8);
  });
});

describe('what a full engine got done before it was lowered', () => {
  it('does not raise it again, over however long a time it is looked at', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.1), 20, 23);
    expect(capacity.share).toBe(0.1);
    // From 8 s before it was full on.
    expect(look(capacity, full(0.4, { seconds: 17 }), 24, 26, false)).toBe(0.1);
    expect(look(capacity, full(0.4, { seconds: 17 }), 32, 32, false)).toBeGreaterThan(0.3);
  });
});

describe('the capacity of an engine with room', () => {
  it('does not rise because the load fell', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.7), 0, 3);
    for (const [at, done] of [0.6, 0.3, 0.1].entries()) {
      expect(look(capacity, withRoom(0.7, done), 10 + 1_000 * at, 1_009 + 1_000 * at)).toBe(0.7);
    }
  });

  it('rises to the usual step by step when it holds as few requests as its profile says', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.7), 0, 3);
    expect(look(capacity, withRoom(1), 10, 29)).toBe(0.7);
    expect(look(capacity, withRoom(1), 30, 30)).toBeCloseTo(0.77);
    expect(look(capacity, withRoom(1), 31, 120)).toBe(1);
  });

  it('rises by up to twice every ten seconds once it has shown with room what it showed when full', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.1), 0, 3);
    expect(look(capacity, withRoom(0.1, 0.05), 4, 24)).toBe(0.1);
    expect(look(capacity, withRoom(1, 0.05), 25, 35)).toBeCloseTo(0.2);
    expect(look(capacity, withRoom(1, 0.05), 36, 70)).toBe(1);
  });

  it('rises from less than half by half of the way while it has not, and waits longer after each time that was too early', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.25), 0, 3);
    expect(look(capacity, withRoom(1, 0.2), 4, 14)).toBeCloseTo(0.5);
    expect(look(capacity, full(0.25), 15, 20)).toBe(0.25);
    expect(look(capacity, withRoom(1, 0.2), 21, 40)).toBe(0.25);
    expect(look(capacity, withRoom(1, 0.2), 41, 41)).toBeCloseTo(0.5);
  });

  it('rises in time however looks scatter that all say enough for it', () => {
    const share = fc.double({ min: 0.5, max: 0.94, noNaN: true });
    const scatter = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { minLength: 32, maxLength: 32 });
    fc.assert(
      fc.property(share, scatter, (before, all) => {
        const capacity = new MeasuredCapacity();
        capacity.resume(before, 0);
        // 15 % more than the share, or nine tenths of the profile.
        const least = Math.min(0.9, 1.15 * before) + 1e-9;
        for (const [second, each] of all.entries())
          capacity.accept(withRoom(least + each * (1.1 - least)), true, second * 1_000);
        expect(capacity.share).toBeGreaterThan(before);
      }),
    );
  });

  it('stays while nothing is known', () => {
    const capacity = new MeasuredCapacity();
    look(capacity, full(0.7), 0, 3);
    expect(look(capacity, undefined, 4, 4_000)).toBe(0.7);
  });

  it('rises above the profile in steps when it shows more at work, and ends that when it no longer does', () => {
    const capacity = new MeasuredCapacity();
    expect(look(capacity, withRoom(1.4, 0.4), 0, 200)).toBe(1);
    expect(look(capacity, withRoom(1.4), 201, 221)).toBeCloseTo(1.1);
    expect(look(capacity, withRoom(1.4), 222, 400)).toBe(1.25);
    expect(look(capacity, withRoom(1.05), 401, 450)).toBe(1);
  });

  it('does not rise above the profile for what a full engine gets done', () => {
    expect(look(new MeasuredCapacity(), full(1.3), 0, 60)).toBe(1);
  });

  it('waits twice as long after each rise that was too early, so that it does not swing', () => {
    const capacity = new MeasuredCapacity();
    let turns = 0;
    let second = 0;
    // Its requests look as quick as ever until it is full, at seven tenths of what the profile says.
    while (second < 3_600) {
      const before = capacity.share;
      const at = before > 0.75 ? full(0.7) : withRoom(1);
      capacity.accept(at, true, ++second * 1_000);
      if (capacity.share < before) turns++;
    }
    expect(turns).toBeLessThanOrEqual(8);
  });
});

it('the share stays within its bounds, falls below 1 only for a full engine, and is corrected since some time if it is not 1', () => {
  const anything = fc.option(
    fc.record({
      seconds: fc.constant(5),
      answers: fc.nat(10_000),
      knowsCache: fc.boolean(),
      doneRho: fc.double({ min: 0, max: 5, noNaN: true }),
      mostRho: fc.double({ min: 0, max: 5, noNaN: true }),
      heldRho: fc.double({ min: 0, max: 0.98, noNaN: true }),
      isFull: fc.boolean(),
    }),
    { nil: undefined },
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(anything, fc.integer({ min: 1, max: 60 })), { maxLength: 30 }), (looks) => {
      const capacity = new MeasuredCapacity();
      let second = 0;
      for (const [at, times] of looks) {
        const before = capacity.share;
        look(capacity, at, second, second + times);
        second += times + 1;
        expect(capacity.share).toBeGreaterThanOrEqual(0.1);
        expect(capacity.share).toBeLessThanOrEqual(1.25);
        expect(capacity.sinceMs !== undefined).toBe(capacity.share !== 1);
        if (at === undefined) expect(capacity.share).toBe(before);
        if (capacity.share < Math.min(1, before)) expect(at!.isFull).toBe(true);
      }
    }),
  );
});
