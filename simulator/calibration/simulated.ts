import { EngineCore, type Sequence } from '../engine/engine-core.js';
import type { EngineParameters } from '../engine/parameters.js';
import type { BatchRun, LoadStage } from './measured.js';

/** What an API server takes for each request before the engine sees it (BLIS's fit of vLLM's: 15.6 ms). */
const INGRESS_SECONDS = 0.015;
/** As long as each stage of the measurement. */
const STAGE_SECONDS = 60;

/** Seconds until the last of equal requests that began together is answered. */
export function batchSeconds(
  parameters: EngineParameters,
  { tokens, batch }: Omit<BatchRun, 'seconds'>,
): number {
  let endedAt = 0;
  const core = new EngineCore(roomy(parameters), (sequence, at) => {
    if (sequence.finished) endedAt = at;
  });
  for (let index = 0; index < batch; index++)
    core.submit({ promptTokens: tokens, outputTokens: tokens, blockIds: [] }, 0);
  while (core.nextEventAt < Number.POSITIVE_INFINITY) core.advance(core.nextEventAt);
  return endedAt;
}

/** The stage again; `cachedShare` of every prompt is in the prefix cache. */
export function stage(
  parameters: EngineParameters,
  { offeredRps, promptTokens, outputTokens }: LoadStage,
  cachedShare: number,
): Pick<LoadStage, 'completedRps' | 'ttftSeconds' | 'tbotSeconds'> {
  const answered: { readonly sequence: Sequence; readonly at: number }[] = [];
  const core = new EngineCore({ ...parameters, maxWaiting: 1e6 }, (sequence, at) => {
    if (sequence.finished) answered.push({ sequence, at });
  });
  const count = Math.round(offeredRps * STAGE_SECONDS);
  const cachedBlocks = Math.round((cachedShare * promptTokens) / parameters.blockTokens);
  const blockIds = Array.from({ length: cachedBlocks }, (_, index) => index);
  core.preload(blockIds);
  for (let index = 0; index < count; index++)
    core.submit({ promptTokens, outputTokens, blockIds }, index / offeredRps);
  while (core.nextEventAt < Number.POSITIVE_INFINITY) core.advance(core.nextEventAt);
  const mean = (value: (item: (typeof answered)[number]) => number) =>
    answered.reduce((sum, item) => sum + value(item), 0) / answered.length;
  return {
    completedRps: answered.length / Math.max(STAGE_SECONDS, answered.at(-1)!.at),
    ttftSeconds: INGRESS_SECONDS + mean(({ sequence }) => sequence.firstTokenAt - sequence.arrivedAt),
    tbotSeconds: mean(({ sequence, at }) => (at - sequence.firstTokenAt) / (outputTokens - 1)),
  };
}

/** Without limits that the measured batches did not meet. */
function roomy(parameters: EngineParameters): EngineParameters {
  return { ...parameters, maxRunning: 512, kvBlocks: 1e6, maxModelTokens: 1e6 };
}
