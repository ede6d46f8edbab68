import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Load, Overflow } from './overflow.js';

/**
 * Two engines as queues of their own: each serves `rate` requests/s, and requests take 1 s besides waiting. `offered` is
 * what their keys ask for; the fraction of the first that overflows goes to the second and the other way round.
 */
class Queues {
  readonly overflow = new Overflow();
  readonly history: number[][] = [];
  readonly inFlight = [0, 0];
  #nowMs = 0;

  run(
    seconds: number,
    offered: readonly [number, number],
    rates: readonly [number, number],
    most = 12,
  ): void {
    for (let tick = 0; tick < seconds * 5; tick++) {
      const [f0 = 0, f1 = 0] = ['a', 'b'].map((id) => this.overflow.fractions.get(id) ?? 0);
      const arriving = [offered[0] * (1 - f0) + offered[1] * f1, offered[1] * (1 - f1) + offered[0] * f0];
      for (const at of [0, 1]) {
        const served = Math.min(rates[at]!, this.inFlight[at]!);
        this.inFlight[at] = Math.max(0, this.inFlight[at]! + 0.2 * (arriving[at]! - served));
      }
      this.#nowMs += 200;
      if (tick % 5 === 0) this.look(most);
    }
  }

  look(most: number): void {
    const room = this.inFlight.map((count) => count < most);
    this.overflow.update(
      ['a', 'b'].map(
        (id, at): Load => ({
          id,
          inFlight: this.inFlight[at]!,
          most,
          limit: 2 * most,
          requestSeconds: 1,
          hasRoomElsewhere: room[1 - at]!,
        }),
      ),
      this.#nowMs,
    );
    this.history.push(['a', 'b'].map((id) => this.overflow.fractions.get(id) ?? 0));
  }

  /** How often the fraction of the first engine turned from falling to rising in the last `looks`. */
  turns(looks: number): number {
    const steps = this.history
      .slice(-looks)
      .map(([a]) => a!)
      .filter((value, at, all) => at === 0 || value !== all[at - 1]);
    return steps.filter((value, at) => at > 1 && value > steps[at - 1]! && steps[at - 1]! < steps[at - 2]!)
      .length;
  }
}

describe('overflow', () => {
  it('leaves engines alone that have no more than they should', () => {
    const queues = new Queues();
    queues.run(300, [9, 9], [12, 12]);
    expect(queues.history.flat().every((fraction) => fraction === 0)).toBe(true);
  });

  it('takes its surplus from an engine that turned slow, and only about that', () => {
    const queues = new Queues();
    queues.run(60, [9, 6], [12, 20]);
    queues.run(120, [9, 6], [4, 20]);
    // 4 of 9 are served; a little more than the surplus leaves, so that the queue gets shorter.
    const [fraction] = queues.history.at(-1)!;
    expect(fraction).toBeGreaterThan(0.5);
    expect(fraction).toBeLessThan(0.85);
    expect(queues.inFlight[0]).toBeLessThan(16);
    expect(queues.history.at(-1)![1]).toBe(0);
  });

  it('brings the keys back when the engine is well again', () => {
    const queues = new Queues();
    queues.run(120, [9, 6], [4, 20]);
    queues.run(600, [9, 6], [12, 20]);
    expect(queues.history.at(-1)).toEqual([0, 0]);
  });

  it('comes to rest under a lasting surplus: returns that were too early get rarer', () => {
    const queues = new Queues();
    queues.run(3_600, [12, 4], [6, 30]);
    expect(queues.turns(3_600)).toBeLessThan(14);
    expect(queues.turns(1_200)).toBeLessThan(4);
  });

  it('comes back as fast as ever when half an hour has passed with nothing wrong since a return that was too early', () => {
    const overflow = new Overflow();
    let second = 0;
    const hold = (inFlight: number, seconds: number) => {
      for (const end = second + seconds; second < end; second++) {
        const load = { id: 'a', inFlight, most: 4, limit: 1_000, requestSeconds: 1, hasRoomElsewhere: true };
        overflow.update([load], second * 1_000);
      }
      return overflow.fractions.get('a') ?? 0;
    };
    const returnedIn = (seconds: number) => hold(0, 0) - hold(0, seconds);
    hold(100, 60);
    for (let early = 0; early < 4; early++) {
      hold(0, 200);
      hold(100, 60);
    }
    expect(returnedIn(60)).toBe(0);
    hold(100, 60);
    hold(8, 1_860);
    expect(returnedIn(60)).toBeGreaterThan(0.25);
  });

  it('sees too much also where a limit hides how much it is', () => {
    const overflow = new Overflow();
    for (let second = 0; second < 60; second++) {
      const load = { id: 'a', inFlight: 4.8, most: 4, limit: 5, requestSeconds: 0.7, hasRoomElsewhere: true };
      overflow.update([load], second * 1_000);
    }
    expect(overflow.fractions.get('a')).toBeGreaterThan(0.3);
  });

  it('moves nothing while nobody has room', () => {
    const queues = new Queues();
    queues.run(300, [30, 30], [4, 4]);
    const [a, b] = queues.history.at(-1)!;
    expect(a! + b!).toBeLessThan(0.5);
  });

  it('stays between 0 and 1 and in whole steps, whatever is reported', () => {
    const look = fc.record({
      inFlight: fc.integer({ min: 0, max: 10_000 }),
      most: fc.double({ min: 0, max: 1_000, noNaN: true }),
      requestSeconds: fc.double({ min: 0, max: 600, noNaN: true }),
      hasRoomElsewhere: fc.boolean(),
      afterMs: fc.integer({ min: 0, max: 60_000 }),
    });
    fc.assert(
      fc.property(fc.array(look, { maxLength: 100 }), (looks) => {
        const overflow = new Overflow();
        let nowMs = 0;
        for (const { afterMs, ...load } of looks) {
          nowMs += afterMs;
          overflow.update([{ id: 'a', limit: 1.25 * load.most, ...load }], nowMs);
          const fraction = overflow.fractions.get('a') ?? 0;
          expect(fraction >= 0 && fraction <= 1).toBe(true);
          expect(Math.abs(fraction / 0.02 - Math.round(fraction / 0.02))).toBeLessThan(1e-6);
        }
      }),
    );
  });
});
