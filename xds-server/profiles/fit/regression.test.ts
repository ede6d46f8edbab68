import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Equation, fitNonNegative } from './regression.js';

const coefficient = fc.oneof(fc.constant(0), fc.double({ min: 0.1, max: 10, noNaN: true }));
const rows = fc.array(
  fc.array(fc.double({ min: 0.1, max: 10, noNaN: true }), { minLength: 3, maxLength: 3 }),
  { minLength: 6, maxLength: 12 },
);

function loss(equations: readonly Equation[], coefficients: readonly number[]): number {
  return equations.reduce((sum, { row, target }) => {
    const r = Math.abs(row.reduce((value, x, i) => value + x * coefficients[i]!, -target));
    return sum + (r <= 0.05 ? r * r : 0.05 * (2 * r - 0.05));
  }, 0);
}

describe('fitNonNegative', () => {
  it('finds coefficients that explain all equations exactly', () => {
    fc.assert(
      fc.property(rows, fc.tuple(coefficient, coefficient, coefficient), (matrix, truth) => {
        fc.pre(truth.some((value) => value > 0));
        const equations = matrix.map((row) => {
          const measured = row.reduce((sum, x, i) => sum + x * truth[i]!, 0);
          return { row: row.map((x) => x / measured), target: 1 };
        });
        expect(loss(equations, fitNonNegative(equations))).toBeLessThan(1e-9);
      }),
      { numRuns: 50 },
    );
  });

  it('returns no negative coefficient, and none that a small step improves', () => {
    const target = fc.double({ min: 0.5, max: 2, noNaN: true });
    fc.assert(
      fc.property(rows, fc.array(target, { minLength: 12, maxLength: 12 }), (matrix, targets) => {
        const equations = matrix.map((row, i) => ({ row, target: targets[i]! }));
        const found = fitNonNegative(equations);
        const best = loss(equations, found);
        for (let index = 0; index < 3; index += 1) {
          expect(found[index]).toBeGreaterThanOrEqual(0);
          for (const step of [-1e-3, 1e-3]) {
            const moved = found.with(index, Math.max(0, found[index]! + step));
            expect(loss(equations, moved)).toBeGreaterThanOrEqual(best * (1 - 1e-3) - 1e-12);
          }
        }
      }),
      { numRuns: 50 },
    );
  });

  it('lets one outlier among good stages pull the answer by little', () => {
    const good = [1, 2, 3, 4, 5, 6].map((x) => ({ row: [1 / (2 + x), x / (2 + x)], target: 1 }));
    const [a, b] = fitNonNegative([...good, { row: [1 / 20, 3 / 20], target: 1 }]);
    expect(a).toBeCloseTo(2, 0);
    expect(b).toBeCloseTo(1, 1);
  });
});
