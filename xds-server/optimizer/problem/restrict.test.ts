import fc from 'fast-check';
import { expect, test } from 'vitest';
import { believedInput } from '../input.js';
import { randomInput } from '../testing/random.js';
import { buildFlowProblem } from './flow-problem.js';
import { buildProblem } from './problem.js';
import { restrict, widen } from './restrict.js';

const problem = buildProblem(
  believedInput(randomInput(1, { frontends: 3, engines: 9, pools: 2, eligibility: 0.6, load: 0.5 })),
);
const whole = buildFlowProblem(
  problem,
  Float64Array.from(problem.rows, ({ demandRps }) => demandRps),
);

/** By arc: 0 never taken, 1 from the start, 2 joins later. */
const stages = fc.array(fc.integer({ min: 0, max: 2 }), {
  minLength: problem.arcRow.length,
  maxLength: problem.arcRow.length,
});

test('a restriction that is widened is the restriction to all of its arcs', () => {
  fc.assert(
    fc.property(stages, (stageOf) => {
      const first = Uint8Array.from(stageOf, (stage) => (stage === 1 ? 1 : 0));
      const all = Uint8Array.from(stageOf, (stage) => (stage > 0 ? 1 : 0));
      const joining = stageOf.flatMap((stage, arc) => (stage === 2 ? [arc] : [])).reverse();
      const widened = widen(whole, restrict(whole, first), joining);
      const expected = restrict(whole, all);
      expect(widened.flowProblem).toEqual(expected.flowProblem);
      expect(widened.picked.arcs).toEqual(expected.picked.arcs);
      const marks = restrict(whole, first).picked.marks(first);
      expect(widened.picked.marks(new Uint8Array(all.length), marks)).toEqual(
        Uint8Array.from(expected.picked.arcs, (arc) => first[arc]!),
      );
    }),
    { numRuns: 50 },
  );
});
