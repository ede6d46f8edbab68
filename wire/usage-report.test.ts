import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UsageReport } from './usage-report.js';
import { decodeUsageReport } from './usage-report-reader.js';
import { encodeUsageReport } from './usage-report-writer.js';

const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const count = fc.maxSafeNat();

const anyReport: fc.Arbitrary<UsageReport> = fc.record({
  vms: fc.array(
    fc.record({
      incarnation: hash,
      pools: fc.array(
        fc.record({
          pool: hash,
          offered: count,
          clientRetries: count,
          shed: count,
          unavailable: count,
          withoutKey: count,
        }),
        { maxLength: 3 },
      ),
      engines: fc.array(
        fc.record({
          pool: hash,
          engine: hash,
          planned: count,
          diverted: count,
          ended: count,
          failures: count,
          status2xx: count,
          status4xx: count,
          status5xx: count,
          noResponse: count,
          retries: count,
          firstByteSecondsSum: fc.double({ min: 0, max: 1e12, noNaN: true }),
          firstByteCount: count,
        }),
        { maxLength: 3 },
      ),
    }),
    { maxLength: 3 },
  ),
});

describe('a usage report', () => {
  it('is read as it was written', () => {
    fc.assert(
      fc.property(anyReport, (report) => {
        expect(decodeUsageReport(encodeUsageReport(report))).toEqual(report);
      }),
    );
  });

  it('is refused when it is cut short or goes on', () => {
    fc.assert(
      fc.property(anyReport, fc.nat(), (report, cut) => {
        const bytes = encodeUsageReport(report);
        expect(() => decodeUsageReport(bytes.subarray(0, cut % bytes.length))).toThrow(/^usage report /);
        const longer = new Uint8Array(bytes.length + 8);
        longer.set(bytes);
        expect(() => decodeUsageReport(longer)).toThrow(/^usage report /);
      }),
    );
  });

  it('is read or refused with a coded error, whatever the bytes', () => {
    fc.assert(
      fc.property(anyReport, fc.nat(), fc.integer({ min: 0, max: 255 }), (report, at, value) => {
        const bytes = encodeUsageReport(report);
        bytes[at % bytes.length] = value;
        try {
          decodeUsageReport(bytes);
        } catch (error) {
          expect(error).toMatchObject({ code: 'WARDROP_REPORT_INVALID' });
        }
      }),
    );
  });
});
