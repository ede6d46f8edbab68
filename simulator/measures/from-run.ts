import { meanOf, quantile, quantileOfSorted } from '../load/statistics.js';
import type { Scenario } from '../scenario.js';
import type { ClassRecord, Recorder } from '../virtual/recorder.js';
import type { ClassFigures, Measures } from './measures.js';
import { oscillation, settlingSeconds, tvPerMinute } from './steadiness.js';

/** Expected moves below which their ratio says nothing. */
const LEAST_MOVES = 20;

export function measure(scenario: Scenario, recorder: Recorder): Measures {
  const { e2eSeconds, ttftSeconds, tbotSeconds, requests, ends, byClass, workSeconds } = recorder;
  const [e2e, ttft, tbot] = [e2eSeconds, ttftSeconds, tbotSeconds].map((values) =>
    Float64Array.from(values).sort(),
  ) as [Float64Array, Float64Array, Float64Array];
  const at = (sorted: Float64Array, q: number) => 1000 * quantileOfSorted(sorted, q);
  const means = recorder.frontendE2eSeconds.filter((values) => values.length > 0).map(meanOf);
  const loads = workSeconds.map((sum) => sum / scenario.seconds);
  return {
    requests,
    meanE2eMs: 1000 * meanOf(e2eSeconds),
    p50E2eMs: at(e2e, 0.5),
    p90E2eMs: at(e2e, 0.9),
    p99E2eMs: at(e2e, 0.99),
    p999E2eMs: at(e2e, 0.999),
    meanTtftMs: 1000 * meanOf(ttftSeconds),
    p50TtftMs: at(ttft, 0.5),
    p90TtftMs: at(ttft, 0.9),
    p99TtftMs: at(ttft, 0.99),
    p999TtftMs: at(ttft, 0.999),
    meanTbotMs: 1000 * meanOf(tbotSeconds),
    p99TbotMs: at(tbot, 0.99),
    goodput: recorder.good / requests,
    goodputRps: recorder.good / scenario.seconds,
    cacheHitShare: recorder.cachedTokens / recorder.promptTokens,
    cacheHitTokens: recorder.cachedTokens,
    movedShare: recorder.followUps === 0 ? 0 : recorder.moved / recorder.followUps,
    movesPerTv: recorder.expectedMoves < LEAST_MOVES ? null : recorder.moved / recorder.expectedMoves,
    tvPerMinute: tvPerMinute(scenario, recorder),
    ...oscillation(scenario, recorder),
    settlingSeconds: settlingSeconds(scenario, recorder),
    shedShare: ends.shed / requests,
    failedShare: (ends.failed + ends.timeout) / requests,
    clientRetriesPerRequest: recorder.clientRetries / requests,
    failoversPerRequest: recorder.failovers / requests,
    frontendSpread: Math.max(...means) / Math.min(...means),
    peakLoad: Math.max(...loads),
    driftDetected: recorder.driftDetected === undefined ? null : Number(recorder.driftDetected),
    byClass: Object.fromEntries(
      byClass.map((record, index) => [scenario.classes[index]!.id, classFigures(record)]),
    ),
    loadByEngine: Object.fromEntries(scenario.engines.map(({ id }, index) => [id, loads[index]!])),
  };
}

function classFigures({ ends, e2eSeconds, good }: ClassRecord): ClassFigures {
  const requests = e2eSeconds.length;
  return {
    meanE2eMs: 1000 * meanOf(e2eSeconds),
    p99E2eMs: 1000 * quantile(e2eSeconds, 0.99),
    goodput: good / requests,
    shedShare: ends.shed / requests,
    failedShare: (ends.failed + ends.timeout) / requests,
  };
}
