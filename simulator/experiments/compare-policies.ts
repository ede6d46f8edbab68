import type { PolicyFactory } from '../policies/policy.js';
import type { Recorder } from '../virtual/recorder.js';
import type { Scenario } from '../virtual/scenario.js';
import { World } from '../virtual/world.js';
import { type Measures, measure } from './measures.js';

export interface NamedPolicy {
  readonly name: string;
  readonly policy: PolicyFactory;
}

/** One policy in one scenario, over all seeds. */
export interface Cell {
  readonly scenario: Scenario;
  readonly policy: string;
  readonly seeds: readonly number[];
  /** By seed. */
  readonly runs: readonly Measures[];
  /** The run of the first seed, for plots. */
  readonly sample: RunSample;
}

export interface RunSample {
  readonly samples: Recorder['samples'];
  /** Seconds to the complete answer at 101 quantiles, 0 to 1. */
  readonly e2eQuantiles: readonly number[];
}

export interface Comparison {
  readonly cells: readonly Cell[];
  readonly cpuSeconds: number;
  readonly requests: number;
}

/** Tells of each run as it begins; `done` of `total` are over. */
export type OnRun = (name: string, done: number, total: number) => void;

/** Every policy in every scenario with every seed; a seed gives all policies the same requests. */
export async function comparePolicies(
  scenarios: readonly Scenario[],
  policies: readonly NamedPolicy[],
  seeds: readonly number[],
  onRun: OnRun,
): Promise<Comparison> {
  const startedAt = process.cpuUsage();
  const total = scenarios.length * policies.length * seeds.length;
  let done = 0;
  let requests = 0;
  const cells: Cell[] = [];
  for (const scenario of scenarios) {
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
  return { cells, cpuSeconds: (user + system) / 1e6, requests };
}

function quantiles(values: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return Array.from(
    { length: 101 },
    (_, percent) => sorted[Math.round((percent / 100) * (sorted.length - 1))]!,
  );
}
