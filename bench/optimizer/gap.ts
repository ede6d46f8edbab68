import type { Optimizer } from '../../xds-server/optimizer/index.js';
import { randomInput, randomNumbers, shakenDemand } from '../../xds-server/optimizer/testing/random.js';
import { weightsOf } from '../../xds-server/optimizer/testing/world.js';

export interface GapResult {
  readonly fleets: number;
  readonly solves: number;
  /** Largest relative distance between a plan's objective and its proven lower bound. */
  readonly gapMax: number;
  /** The same among solves that shed nothing. */
  readonly gapMaxUnshed: number;
  readonly shedding: number;
}

/**
 * Random fleets of up to 20 frontends, 50 engines and 8 pools, loaded from 0.2 to 1.2 of their capacity: each is placed
 * for the first time, then again from its own weights with demand up to 10 % off.
 */
export async function measureGap(optimizer: Optimizer, fleets: number): Promise<GapResult> {
  let gapMax = 0;
  let gapMaxUnshed = 0;
  let solves = 0;
  let shedding = 0;
  for (let seed = 1; seed <= fleets; seed++) {
    const random = randomNumbers(seed);
    const input = randomInput(seed, {
      frontends: 1 + Math.floor(20 * random()),
      engines: 1 + Math.floor(50 * random()),
      pools: 1 + Math.floor(8 * random()),
      eligibility: 0.1 + 0.9 * random(),
      load: 0.2 + random(),
    });
    const first = await optimizer.solve(input);
    const again = { ...input, previousWeights: weightsOf(first) };
    for (const solution of [first, await optimizer.solve(shakenDemand(again, 0.1, seed))]) {
      const { objectiveSeconds, lowerBoundSeconds } = solution;
      const gap = objectiveSeconds > 0 ? (objectiveSeconds - lowerBoundSeconds) / objectiveSeconds : 0;
      const sheds = solution.rows.some(({ shed }) => shed.some(({ fraction }) => fraction > 0));
      gapMax = Math.max(gapMax, gap);
      if (sheds) shedding++;
      else gapMaxUnshed = Math.max(gapMaxUnshed, gap);
      solves++;
    }
  }
  return { fleets, solves, gapMax, gapMaxUnshed, shedding };
}
