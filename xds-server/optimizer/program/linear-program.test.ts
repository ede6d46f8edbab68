import { expect, test } from 'vitest';
import { loadHighs } from './highs.js';
import { AT_LOWER, AT_UPPER, BASIC, LinearSolver, ProgramBuilder } from './linear-program.js';

const highs = await loadHighs();

/** Least cost of a + b = 3 with a <= 2, at 1 and 4 apiece. */
function twoVariables(cost = 1) {
  const builder = new ProgramBuilder(Float64Array.of(1));
  builder.add(cost, 2);
  builder.entry(0, 1);
  builder.add(4, 10);
  builder.entry(0, 1);
  return { builder, side: Float64Array.of(3) };
}

test('row duals are what one more on the right-hand side costs', () => {
  const solver = new LinearSolver(highs);
  const { builder, side } = twoVariables();
  const { values, rowDuals, objective, isBasic } = solver.solve(builder.finish(side, side));
  expect([...values]).toEqual([2, 1]);
  expect(objective).toBe(6);
  expect(rowDuals[0]).toBe(4);
  expect([isBasic(0), isBasic(1)]).toEqual([false, true]);
  solver.dispose();
});

test('changed bounds, changed costs and added columns are seen, resumed or not', () => {
  const solver = new LinearSolver(highs);
  const { builder, side } = twoVariables();
  solver.solve(builder.finish(side, side));
  const wider = builder.finish(Float64Array.of(5), Float64Array.of(5));
  expect(solver.solve(wider, { resume: true }).objective).toBe(14);
  builder.add(2, 1);
  builder.entry(0, 1);
  expect(solver.solve(builder.finish(side, side), { resume: true }).objective).toBe(4);
  expect(solver.solve(twoVariables(3).builder.finish(side, side)).objective).toBe(10);
  solver.dispose();
});

test('any basis to start from, and any way to pivot, ends at the same optimum', () => {
  const solver = new LinearSolver(highs);
  const { builder, side } = twoVariables();
  for (const statuses of [
    [BASIC, AT_LOWER],
    [AT_UPPER, BASIC],
    [AT_LOWER, BASIC],
  ]) {
    const basis = { colStatus: Int32Array.from(statuses), rowStatus: Int32Array.of(AT_LOWER) };
    for (const isPrimal of [false, true]) {
      const { values, objective } = solver.solve(builder.finish(side, side), { basis, isPrimal });
      expect([...values]).toEqual([2, 1]);
      expect(objective).toBe(6);
    }
  }
  solver.dispose();
});

test('a limit of something small is kept as exactly as those of what is large', () => {
  const solver = new LinearSolver(highs);
  const size = 1e-6;
  const builder = new ProgramBuilder(Float64Array.of(size));
  builder.add(-1, 1.05 * size, size);
  builder.entry(0, 1);
  const basis = { colStatus: Int32Array.of(AT_UPPER), rowStatus: Int32Array.of(BASIC) };
  const program = builder.finish(Float64Array.of(-Infinity), Float64Array.of(size));
  const { values, rowDuals } = solver.solve(program, { basis });
  expect(values[0]! / size).toBeCloseTo(1, 6);
  expect(rowDuals[0]).toBeCloseTo(-1, 9);
  solver.dispose();
});

test('a run that breaks off is made anew from nothing', () => {
  let runs = 0;
  const breaking = {
    createModel: () => {
      const model = highs.createModel();
      return new Proxy(model, {
        get(target, name) {
          if (name === 'run' && runs++ === 0) throw new Error('run failed with HiGHS status -1');
          const value: unknown = Reflect.get(target, name, target);
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    },
  };
  const solver = new LinearSolver(breaking as unknown as typeof highs);
  const { builder, side } = twoVariables();
  expect(solver.solve(builder.finish(side, side)).objective).toBe(6);
  expect(runs).toBe(2);
  solver.dispose();
});

test('a program without a solution is a failure, never a result', () => {
  const solver = new LinearSolver(highs);
  const { builder } = twoVariables();
  const side = Float64Array.of(50);
  expect(() => solver.solve(builder.finish(side, side))).toThrow(
    expect.objectContaining({ code: 'WARDROP_SOLVER_FAILED' }) as Error,
  );
  solver.dispose();
});
