import { percent } from '../../percent.js';
import type { Capacity } from './capacity.js';
import type { FitResult, Fitted, FittedStage, Range } from './result.js';
import type { WorkFit } from './work.js';

/** The fit in words and figures: parameters, capacity, every stage with its errors, warnings. Ends in a line break. */
export function renderReport(result: FitResult): string {
  return `${[
    ...summary(result),
    '',
    ...table(
      ['stage', 'offered/s', 'done/s', 'rho', 'TTFT', 'curve', 'error', 'TBOT', 'curve', 'error', 'use'],
      result.stages.map(stageRow),
    ),
    ...(result.warnings.length === 0 ? [] : ['', 'Warnings']),
    ...result.warnings.map(({ code, message }) => `  ${code}: ${message}.`),
  ].join('\n')}\n`;
}

function summary(result: FitResult): string[] {
  const { profile, ranges } = result;
  const lines = [
    profile === undefined ? `${result.id}: no profile` : `Profile ${result.id}`,
    ...result.capacities.map(capacityLine),
  ];
  if (result.work !== undefined) lines.push(`  work      ${workText(result.work)}`);
  if (profile === undefined) return lines;
  const { ttft, tbot } = profile;
  const perToken =
    ttft.secondsPerUncachedPromptToken > 0
      ? ` + ${milliseconds(ttft.secondsPerUncachedPromptToken)} a prompt token`
      : '';
  lines.push(
    `  TTFT      ${milliseconds(ttft.baseSeconds)}${perToken} + ${milliseconds(ttft.queueSeconds)} * rho / (1 - rho)` +
      between(ranges && [text(ranges.ttft.baseSeconds), text(ranges.ttft.queueSeconds)]),
    `  TBOT      ${milliseconds(tbot.baseSeconds)} / (1 - ${tbot.kappa.toFixed(3)} * rho)` +
      between(
        ranges && [text(ranges.tbot.baseSeconds), text(ranges.tbot.kappa, (kappa) => kappa.toFixed(3))],
      ),
    `  valid     rho from 0 to ${profile.maxFittedRho.toFixed(3)}`,
  );
  return lines;
}

function capacityLine(capacity: Capacity): string {
  const { requestsPerSecond, interval, saturated, saturatedStages } = capacity;
  const size = `${Math.round(capacity.promptTokens)} prompt, ${Math.round(capacity.outputTokens)} output tokens`;
  const rate = `${significant(requestsPerSecond)} requests/s a replica`;
  if (!saturated) return `  capacity  at least ${rate} (${size}; never filled)`;
  const spread =
    interval === undefined ? '' : `${significant(interval.low)} to ${significant(interval.high)}; `;
  const stages = saturatedStages === 1 ? '1 saturated stage' : `${saturatedStages} saturated stages`;
  return `  capacity  ${rate} (${spread}${size}; ${stages})`;
}

const workUnits = {
  secondsPerRequest: 'a request',
  secondsPerUncachedPromptToken: 'an uncached prompt token',
  secondsPerOutputToken: 'an output token',
} as const;

function workText({ work, identified, maxError }: WorkFit): string {
  const terms = identified.map((name) => `${milliseconds(work[name])} ${workUnits[name]}`);
  const error = maxError > 1e-9 ? ` (misses a capacity by at most ${percent(maxError)})` : '';
  return `${terms.join(' + ')}${error}`;
}

/** How far the coefficients move, in the order in which the formula names them. */
function between(ranges: readonly string[] | undefined): string {
  return ranges === undefined ? '' : `   [${ranges.join('; ')}]`;
}

function text({ low, high }: Range, format = milliseconds): string {
  return `${format(low)} to ${format(high)}`;
}

function stageRow(stage: FittedStage): string[] {
  const { observation, rho } = stage;
  return [
    observation.place,
    observation.offeredRps === Infinity ? 'unpaced' : significant(observation.offeredRps),
    significant(observation.completedRps),
    rho === Infinity ? '-' : rho.toFixed(3),
    milliseconds(observation.ttftSeconds),
    ...fittedCells(stage.ttft),
    stage.tbotSeconds === undefined ? '-' : milliseconds(stage.tbotSeconds),
    ...fittedCells(stage.tbot),
    stage.use,
  ];
}

/** Brackets: the stage lies beside the curve but did not shape it. */
function fittedCells(fitted: Fitted | undefined): [string, string] {
  if (fitted === undefined) return ['-', '-'];
  const error = `${fitted.error < 0 ? '' : '+'}${percent(fitted.error)}`;
  return [milliseconds(fitted.seconds), fitted.used ? error : `(${error})`];
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const widths = header.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column]!.length)),
  );
  const last = header.length - 1;
  return [header, ...rows].map((row) =>
    row
      .map((cell, i) => (i === 0 || i === last ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join('  ')
      .trimEnd(),
  );
}

function significant(value: number): string {
  return String(Number(value.toPrecision(4)));
}

function milliseconds(seconds: number): string {
  return `${significant(1000 * seconds)} ms`;
}
