import fc from 'fast-check';
import { expect, it } from 'vitest';
import { steadyClock } from './steady-clock.js';

/** What a clock says after each of these: time that passed, and a step of the machine's clock. */
function readings(steps: readonly (readonly [passedMs: number, stepMs: number])[]) {
  let machineMs = 1_000_000;
  let passedMs = 0;
  const clock = steadyClock(
    () => machineMs,
    () => passedMs,
  );
  return steps.map(([ms, stepMs]) => {
    passedMs += ms;
    machineMs += ms + stepMs;
    return { machineMs, clockMs: clock() };
  });
}

it('goes on when the machine is set back, and with it when it is set forward or has caught up', () => {
  const steps = [
    [1_000, 0],
    [1_000, -60_000],
    [5_000, 0],
    [1_000, 50_000],
    [1_000, 30_000],
  ] as const;
  const clock = readings(steps).map(({ clockMs }) => clockMs - 1_000_000);
  expect(clock).toEqual([1_000, 2_000, 7_000, 8_000, 29_000]);
});

it('never shows less time than has passed, nor an earlier time than the machine, and is as the machine while nobody sets it back', () => {
  const passed = fc.nat(100_000);
  const step = fc.oneof(fc.constant(0), fc.integer({ min: -200_000, max: 200_000 }));
  fc.assert(
    fc.property(fc.array(fc.tuple(passed, step)), (steps) => {
      let beforeMs = 1_000_000;
      for (const [at, { machineMs, clockMs }] of readings(steps).entries()) {
        expect(clockMs - beforeMs).toBeGreaterThanOrEqual(steps[at]![0]);
        expect(clockMs).toBeGreaterThanOrEqual(machineMs);
        beforeMs = clockMs;
      }
    }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(passed, fc.nat(100_000))), (steps) => {
      for (const { machineMs, clockMs } of readings(steps)) expect(clockMs).toBe(machineMs);
    }),
  );
});
