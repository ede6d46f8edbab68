import { describe, expect, it } from 'vitest';
import { type Calibration, calibrations, relative } from './report.js';

describe('the engine model', () => {
  const [a100, h100, transfer] = calibrations();
  const worst = (errors: Calibration['errors']) =>
    Math.max(...errors.map((error) => Math.abs(relative(error))));

  it('answers batches on an A100 as measured', () => {
    expect(a100!.errors).toHaveLength(20);
    expect(worst(a100!.errors)).toBeLessThan(0.16);
  });

  it('makes tokens and has its capacity on an H100 as measured under load', () => {
    const steady = h100!.errors.filter(({ what }) => what.startsWith('TBOT') || what.startsWith('capacity'));
    expect(steady).toHaveLength(6);
    expect(worst(steady)).toBeLessThan(0.02);
  });

  it('is further off for a version of the engine that it was not fitted to', () => {
    expect(transfer!.isFit).toBe(false);
    expect(worst(transfer!.errors)).toBeLessThan(0.2);
  });
});
