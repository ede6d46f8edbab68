import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { endure } from './endurance.js';
import { fuzzForms } from './forms.js';
import { fuzzHeaders } from './headers.js';
import { Random } from './random.js';
import { fuzzScanner } from './scanner.js';
import { fuzzSnapshots } from './snapshots.js';

const seed = fc.readConfigureGlobal().seed!;

describe(`inputs made from seed ${seed}`, () => {
  it('are read by the scanner as JSON.parse reads them', () => {
    expect(fuzzScanner(30_000, new Random(seed))).toBeGreaterThan(3_000);
  });

  it('are read as forms as by a reader that has them whole', () => {
    expect(fuzzForms(20_000, new Random(seed))).toBeGreaterThan(2_000);
  });

  it('make the snapshot reader neither trap nor grow, nor refuse what is sound', () => {
    expect(fuzzSnapshots(30_000, new Random(seed))).toBeGreaterThan(1_000);
  });

  it('leave memory as it is, however many requests and installs there are', () => {
    expect(endure(20_000, new Random(seed))).toBe(20);
  });

  it('make the filter neither trap nor steer where it must not', () => {
    expect(fuzzHeaders(5_000, new Random(seed))).toBeGreaterThan(1_000);
  });
});
