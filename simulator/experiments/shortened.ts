import type { Scenario } from '../scenario.js';

/** The same scenario in less time; faults and steps that come later than its end never happen. */
export function shortened(scenario: Scenario, seconds: number): Scenario {
  if (seconds >= scenario.seconds) return scenario;
  const { warmupSeconds, settledFrom } = scenario;
  return { ...scenario, seconds, settledFrom: Math.min(settledFrom, warmupSeconds + seconds / 2) };
}
