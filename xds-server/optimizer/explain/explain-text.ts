import { percent } from '../../percent.js';
import type { EngineCost, EngineSupply, EngineUse, Explanation } from './explain.js';

const WIDTH = 20;
/** Engines to compare with: those with the largest weights, and then the least costs. */
const MOST_OTHERS = 20;
const LEAST_SHOWN_SECONDS = 5e-5;

/** Full engines end within a few millionths of the hard limit. */
const FULL_SLACK = 1e-4;

/** An explanation in words and milliseconds, for a terminal. */
export function explanationText(explanation: Explanation): string {
  const { frontendId, poolId, engineId, engine } = explanation;
  return [
    `${frontendId} → ${engineId}, pool ${poolId}: ${headline(explanation)}`,
    ...(engine.lines.length > 0 ? ['', ...costTable(engine)] : []),
    '',
    ...conclusion(explanation),
    '',
    ...loadLines(explanation),
    ...shedLines(explanation),
    ...otherLines(explanation),
  ].join('\n');
}

function headline({ engine, demandRps }: Explanation): string {
  if (engine.lines.length === 0) return `weight 0, ${reason(engine.use)}`;
  return `weight ${percent(engine.weight)}, ${engine.rps.toFixed(1)} of ${demandRps.toFixed(1)} requests/s`;
}

function reason(use: EngineUse): string {
  switch (use) {
    case 'not eligible':
      return 'because the engine is not in the pool';
    case 'last resort':
      return 'because the engine is lost or drained and only in service for pools that have nobody else';
    case 'unreachable':
      return 'because the frontend cannot reach the engine';
    case 'without capacity':
      return 'because the engine has no capacity now';
    default:
      return 'because others cost less';
  }
}

/** Lines that would read 0.0 are left out. */
function costTable({ lines, latencySeconds, marginalSeconds }: EngineCost): string[] {
  const shown = lines.filter((line) => Math.abs(line.marginalSeconds) >= LEAST_SHOWN_SECONDS);
  return [
    row('', 'expected latency', 'marginal cost'),
    ...shown.map((line) =>
      row(
        line.name,
        line.latencySeconds === 0 ? '' : milliseconds(line.latencySeconds),
        milliseconds(line.marginalSeconds),
      ),
    ),
    row('total', milliseconds(latencySeconds), milliseconds(marginalSeconds)),
  ];
}

function conclusion({ engine, rowMarginalSeconds, frontendId, demandRps }: Explanation): string[] {
  if (rowMarginalSeconds === null) {
    const refused = demandRps > 0 ? ` All ${demandRps.toFixed(1)} requests/s are refused.` : '';
    return [`No engine can serve these requests of ${frontendId} now.${refused}`];
  }
  const best = milliseconds(rowMarginalSeconds);
  if (engine.lines.length === 0)
    return [`One more request of ${frontendId} costs all users together ${best} where it costs least.`];
  if (engine.use === 'used') {
    return [
      ...boundLines(engine),
      `One more request of ${frontendId} costs all users together ${best} wherever it goes among the engines it uses.`,
    ];
  }
  const short = engine.shortSeconds - Math.min(0, boundSeconds(engine));
  const why = boundDecides(engine)
    ? 'without the bound this engine would be used'
    : `this engine is ${milliseconds(short)} short of being used`;
  return [
    ...boundLines(engine),
    `One more request of ${frontendId} costs all users together ${best} where it costs least: ${why}.`,
  ];
}

/** Whether the weight would be another without the operator; one of 0 that is too dear anyway would not. */
function boundDecides(engine: EngineCost): boolean {
  return !!engine.bound?.binding && (engine.use === 'used' || boundSeconds(engine) > 0);
}

function boundSeconds({ lines }: EngineCost): number {
  return lines.find(({ name }) => name === 'bound')?.marginalSeconds ?? 0;
}

function boundLines(engine: EngineCost): string[] {
  const { bound } = engine;
  if (!bound) return [];
  const range =
    bound.min === bound.max
      ? `pins the weight to ${percent(bound.min)}`
      : `keeps the weight within ${percent(bound.min)} and ${percent(bound.max)}`;
  let effect = '; the weight is free within.';
  if (boundDecides(engine)) effect = ', and that decides it.';
  else if (bound.binding) effect = '; it would be that without the bound, too.';
  // Of the operator, or what leaves a penalised engine its trickle.
  return [`A bound ${range}${effect}`];
}

function loadLines(explanation: Explanation): string[] {
  const { load, supply, targetUtilization, maxUtilization, engineId } = explanation;
  const { rho, effectiveCapacity, congestionPriceSeconds, scarcityPriceSeconds } = load;
  if (effectiveCapacity === 0) return [`Engine ${engineId} has no capacity now.`, ...supplyLines(supply)];
  const scarcity =
    scarcityPriceSeconds > 0
      ? `it is full, and a replica-second more would be worth ${scarcityPriceSeconds.toFixed(3)} s beyond that`
      : rho > maxUtilization - FULL_SLACK
        ? 'it is full'
        : 'its capacity is not scarce';
  return [
    `Engine ${engineId} is ${percent(rho)} utilised (target ${percent(targetUtilization)}, limit ` +
      `${percent(maxUtilization)}) of ${effectiveCapacity.toFixed(2)} replicas. A replica-second of work costs ` +
      `${congestionPriceSeconds.toFixed(3)} s of waiting there, its own and that of others; ${scarcity}.`,
    ...supplyLines(supply),
  ];
}

/** What makes the engine another one than its replicas and its profile alone. */
function supplyLines({ replicas, readyReplicas, health, ramp, drain, penalty, latencyFactor }: EngineSupply) {
  const parts = [
    ...(readyReplicas === replicas ? [] : [`${readyReplicas} of ${replicas} replicas are ready`]),
    ...(health === 1
      ? []
      : [
          `it counts as ${percent(health, 0)} of its profile, by what it gets done and what comes from elsewhere`,
        ]),
    ...(ramp === 1 ? [] : [`it is starting, at ${percent(ramp, 0)}`]),
    ...(drain === 1 ? [] : [drain === 0 ? 'it is drained' : `it is being drained, at ${percent(drain, 0)}`]),
    ...(penalty === 0 ? [] : [`a penalty takes ${percent(penalty, 0)} of its capacity`]),
    ...(latencyFactor === 1
      ? []
      : [
          `its latencies count ${latencyFactor.toFixed(1)} times, as it answers so much slower than its profile says`,
        ]),
  ];
  return parts.length === 0 ? [] : [`Its state: ${parts.join('; ')}.`];
}

function shedLines({ shed, choices, demandRps, maxUtilization }: Explanation): string[] {
  const refused = shed.filter(({ fraction }) => fraction > 0);
  if (refused.length === 0 || choices.length === 0) return [];
  const parts = refused.map(({ priority, fraction }) => `${percent(fraction)} of priority ${priority}`);
  const isBound = choices.some(({ bound }) => bound !== null && bound.binding !== null);
  return [
    `Demand above capacity: of ${demandRps.toFixed(1)} requests/s, ${parts.join(' and ')} find no engine below ` +
      `${percent(maxUtilization)}${isBound ? ' that the operator’s bounds allow' : ''} and are refused.`,
  ];
}

function otherLines({ choices, engineId }: Explanation): string[] {
  const others = choices.filter((choice) => choice.engineId !== engineId);
  if (others.length === 0) return [];
  const shown = others.slice(0, MOST_OTHERS);
  const left = others.length - shown.length;
  return [
    '',
    row('other engines', 'weight', 'expected latency', 'marginal cost', 'short by'),
    ...shown.map((choice) =>
      row(
        choice.engineId,
        percent(choice.weight),
        milliseconds(choice.latencySeconds),
        milliseconds(choice.marginalSeconds),
        choice.use === 'used' ? '' : milliseconds(choice.shortSeconds),
      ),
    ),
    ...(left === 0 ? [] : [`… and ${left} more with less weight or at a higher cost; JSON has all`]),
  ];
}

function row(name: string, ...cells: readonly string[]): string {
  return `${name.padEnd(WIDTH)}${cells.map((cell) => cell.padStart(WIDTH)).join('')}`.trimEnd();
}

function milliseconds(seconds: number): string {
  return `${(seconds * 1000).toFixed(1)} ms`;
}
