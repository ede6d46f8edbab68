import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { UsageReport } from './usage-report.js';
import { decodeUsageReport } from './usage-report-reader.js';
import { type Field, sectionNames, sections } from './usage-report-rows.js';
import { encodeUsageReport } from './usage-report-writer.js';

const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
const count = fc.maxSafeNat();
const sum = fc.double({ min: 0, max: 1e12, noNaN: true });

function anyField(field: Field): fc.Arbitrary<unknown> {
  switch (field.kind) {
    case 'hash':
      return hash;
    case 'integer':
      return fc.integer({ min: -100, max: 100 });
    case 'counter':
      return count;
    case 'sum':
      return sum;
    case 'counters':
    case 'sums': {
      const size = { minLength: field.length, maxLength: field.length };
      return fc.array(field.kind === 'sums' ? sum : count, size);
    }
  }
}

const anyRows = sectionNames.map((name) => {
  const fields = Object.entries<Field>(sections[name].row.fields);
  const row = fc.record(Object.fromEntries(fields.map(([field, layout]) => [field, anyField(layout)])));
  return [name, fc.array(row, { maxLength: 3 })] as const;
});
const anyVm = fc.record({
  incarnation: hash,
  sequence: count,
  turnLevel: fc.nat({ max: 63 }),
  ...Object.fromEntries(anyRows),
});
const anyReport = fc.record(
  { vms: fc.array(anyVm, { maxLength: 3 }), displaced: fc.array(hash, { minLength: 1, maxLength: 5 }) },
  { requiredKeys: ['vms'] },
) as unknown as fc.Arbitrary<UsageReport>;

it('the fields of a row of a usage report follow each other without gaps', () => {
  for (const name of sectionNames) {
    const { size, fields } = sections[name].row;
    let end = 0;
    for (const field of Object.values<Field>(fields)) {
      expect(field.at).toBe(end);
      end += 'length' in field ? field.length * 8 : 8;
    }
    expect(size).toBe(end);
  }
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
