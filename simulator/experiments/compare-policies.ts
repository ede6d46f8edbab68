import { measure } from '../measures/from-run.js';
import type { Measures } from '../measures/measures.js';
import type { PolicyFactory } from '../policies/policy.js';
import type { Scenario } from '../scenario.js';
import { World } from '../virtual/world.js';
import type { Cell, Comparison, RunSample } from './comparison.js';

export interface NamedPolicy {
  readonly name: string;
  readonly policy: PolicyFactory;
}

/** Tells of each run as it begins; `done` of `total` are over. */
export type OnRun = (name: string, done: number, total: number) => void;

/** One scenario, and what is tried in it. */
export interface Part {
  readonly scenario: Scenario;
  readonly policies: readonly NamedPolicy[];
  readonly seeds: readonly number[];
}

/** Every policy of every part with every seed; a seed gives all policies the same requests. */
export async function comparePolicies(parts: readonly Part[], onRun: OnRun): Promise<Comparison> {
  const startedAt = process.cpuUsage();
  const total = parts.reduce((sum, { policies, seeds }) => sum + policies.length * seeds.length, 0);
  let done = 0;
  let requests = 0;
  const cells: Cell[] = [];
  for (const { scenario, policies, seeds } of parts) {
    for (const { name, policy } of policies) {
      const runs: Measures[] = [];
      let sample: RunSample | undefined;
      for (const seed of seeds) {
        onRun(`${scenario.id}: ${name}, seed ${seed}`, done++, total);
        const recorder = await World.run(scenario, policy, seed);
        requests += recorder.requests;
        runs.push(measure(scenario, recorder));
        sample ??= { samples: recorder.samples, e2eQuantiles: quantiles(recorder.e2eSeconds) };
      }
      cells.push({ scenario, policy: name, seeds, runs, sample: sample! });
    }
  }
  const { user, system } = process.cpuUsage(startedAt);
  return { cells, assertions: [], cpuSeconds: (user + system) / 1e6, requests };
}

function quantiles(values: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return Array.from(
    { length: 101 },
    (_, percent) => sorted[Math.round((percent / 100) * (sorted.length - 1))]!,
  );
}
