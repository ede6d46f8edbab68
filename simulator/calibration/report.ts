import { type EngineParameters, engineKinds } from '../engine/parameters.js';
import { indent, table } from '../text-table.js';
import { batchRuns, loadStages } from './measured.js';
import { batchSeconds, stage } from './simulated.js';

/** Share of what was offered below which a stage is overload: its latencies are those of its length. */
const KEPT_UP = 0.97;

/**
 * Of the prompts of the inference-perf demo, whose tool sends the same ones again; the share is not published and was
 * fitted like a parameter: without any, the engine would have stopped at 106 requests/s.
 */
const CACHED_SHARE = 0.75;

/** An error of the engine model: simulated over measured, less 1. */
interface ErrorOf {
  readonly what: string;
  readonly measured: number;
  readonly simulated: number;
}

export interface Calibration {
  readonly title: string;
  /** What was fitted to these very points, if anything. */
  readonly isFit: boolean;
  readonly errors: readonly ErrorOf[];
}

/** The engine model against everything published that it is compared with. */
export function calibrations(): Calibration[] {
  return [
    batches('a100', engineKinds['a100-8b']!, true),
    loads(engineKinds['h100-8b']!),
    batches('h100', engineKinds['h100-8b']!, false),
  ];
}

function batches(hardware: 'a100' | 'h100', parameters: EngineParameters, isFit: boolean): Calibration {
  return {
    title: `${hardware}-8b, batches of the LLM-Inference-Bench (vLLM of 2024), seconds`,
    isFit,
    errors: batchRuns()
      .filter((run) => run.hardware === hardware)
      .map((run) => ({
        what: `${run.batch} x (${run.tokens} + ${run.tokens} tokens)`,
        measured: run.seconds,
        simulated: batchSeconds(parameters, run),
      })),
  };
}

function loads(parameters: EngineParameters): Calibration {
  const stages = loadStages().map((measured) => ({
    measured,
    simulated: stage(parameters, measured, CACHED_SHARE),
  }));
  const keptUp = stages.filter(({ measured }) => measured.completedRps > KEPT_UP * measured.offeredRps);
  const most = (values: readonly number[]) => Math.max(...values);
  return {
    title:
      'h100-8b, constant rates of the inference-perf demo (vLLM 0.11, chunked prefill), ms and requests/s',
    isFit: true,
    errors: [
      ...keptUp.flatMap(({ measured, simulated }) => [
        {
          what: `TTFT at ${measured.offeredRps} requests/s`,
          measured: 1000 * measured.ttftSeconds,
          simulated: 1000 * simulated.ttftSeconds,
        },
        {
          what: `TBOT at ${measured.offeredRps} requests/s`,
          measured: 1000 * measured.tbotSeconds,
          simulated: 1000 * simulated.tbotSeconds,
        },
      ]),
      {
        what: 'capacity, requests/s',
        measured: most(stages.map(({ measured }) => measured.completedRps)),
        simulated: most(stages.map(({ simulated }) => simulated.completedRps)),
      },
    ],
  };
}

/** Simulated over measured, less 1. */
export function relative({ measured, simulated }: ErrorOf): number {
  return simulated / measured - 1;
}

/** Tables of all points and their errors. */
export function calibrationReport(): string {
  const parts = calibrations().map(({ title, isFit, errors }) => {
    const sizes = errors.map((error) => Math.abs(relative(error)));
    const mean = sizes.reduce((a, b) => a + b, 0) / sizes.length;
    const rows = errors.map((error) => [
      error.what,
      error.measured.toPrecision(4),
      error.simulated.toPrecision(4),
      percent(relative(error)),
    ]);
    const kind = isFit
      ? 'Parameters were fitted to these points among others: goodness of fit.'
      : 'Another version of the engine than the one that was fitted: what a transfer costs.';
    return `${title}\n${kind} Mean error ${percent(mean, '')}, largest ${percent(Math.max(...sizes), '')}.\n${indent(
      table([['', 'measured', 'simulated', 'error'], ...rows]),
    )}`;
  });
  return `${parts.join('\n\n')}\n`;
}

function percent(value: number, sign = value < 0 ? '-' : '+'): string {
  return `${sign}${(100 * Math.abs(value)).toFixed(1)} %`;
}
