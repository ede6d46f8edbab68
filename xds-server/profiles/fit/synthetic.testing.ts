import type { Observation } from './observation.js';

/** An engine with known parameters, as tests measure it. */
export interface Engine {
  readonly capacityRps: number;
  readonly ttft: { readonly baseSeconds: number; readonly queueSeconds: number };
  readonly tbot: { readonly baseSeconds: number; readonly kappa: number };
  readonly promptTokens: number;
  readonly outputTokens: number;
}

export const engine: Engine = {
  capacityRps: 40,
  ttft: { baseSeconds: 0.05, queueSeconds: 0.004 },
  tbot: { baseSeconds: 0.012, kappa: 0.5 },
  promptTokens: 600,
  outputTokens: 150,
};

/** A long steady stage at this share of the capacity; from 1 on it is overloaded. `noise` are factors near 1. */
export function measure(
  { capacityRps, ttft, tbot, promptTokens, outputTokens }: Engine,
  load: number,
  noise: { ttft?: number; tbot?: number; completed?: number } = {},
): Observation {
  const overloaded = load >= 1;
  const ttftSeconds = overloaded
    ? 30
    : (ttft.baseSeconds + (ttft.queueSeconds * load) / (1 - load)) * (noise.ttft ?? 1);
  const tbotSeconds = (tbot.baseSeconds / (1 - tbot.kappa * Math.min(load, 1))) * (noise.tbot ?? 1);
  const completedRps = Math.min(load, 1) * capacityRps * (overloaded ? (noise.completed ?? 1) : 1);
  return {
    place: `stage ${load}`,
    offeredRps: load * capacityRps,
    completedRps,
    ttftSeconds,
    reportedTbotSeconds: tbotSeconds,
    e2eSeconds: ttftSeconds + (outputTokens - 1) * tbotSeconds,
    statistic: 'mean',
    promptTokens,
    uncachedPromptTokens: promptTokens,
    outputTokens,
    durationSeconds: 6000,
    requests: 6000 * completedRps,
    concurrencyLimit: undefined,
    flaggedOverload: false,
  };
}

/** A sweep as one should measure it: five stages below capacity, two above. */
export function sweep(of: Engine = engine): Observation[] {
  return [0.1, 0.3, 0.5, 0.7, 0.9, 1.2, 1.5].map((load) => measure(of, load));
}
