import { writeFileSync } from 'node:fs';
import { readArguments } from '../arguments.js';
import { type Flow, Frontend, type Moved } from './frontend.js';
import type { TrafficKind } from './traffic.js';

/** What `--json FILE` writes, an element for each line that is shown. */
type Figures = OneFigures | SeveralFigures;

/** Of a frontend with one pool. */
interface OneFigures extends Flow {
  readonly surgeSeconds: SurgeSeconds;
  /** Surges found in ten hours of steady traffic. */
  readonly falseSurges: number;
  /** Shares of rises by a fifth that gave one new rate, and that were taken for surges. */
  readonly steps: { readonly one: number; readonly surges: number };
}

/** Of a frontend with several pools. */
interface SeveralFigures extends Flow {
  /** When all pools rise, to a plan for all of them together. */
  readonly surgeSeconds: SurgeSeconds;
  /** When one pool rises, to a plan for it. */
  readonly oneSurgeSeconds: SurgeSeconds;
  readonly falseSurges: number;
}

/** Seconds from a rise by half to a rate above 1.25 times the former one; infinite (in JSON null) beyond two minutes. */
interface SurgeSeconds {
  readonly p10: number;
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

interface Effort {
  readonly surges: number;
  readonly steps: number;
  readonly steadyHours: number;
  /** With several pools, which take so many times as long to play: the hours are shared by the pools. */
  readonly severalSurges: number;
  readonly severalPoolHours: number;
}

const kinds: readonly TrafficKind[] = ['even', 'independent', 'batches', 'gusts'];
const rates = [5, 40, 400];
const several: readonly Flow[] = [
  { traffic: 'independent', requestsPerSecond: 40, pools: 5 },
  { traffic: 'batches', requestsPerSecond: 40, pools: 5 },
  { traffic: 'batches', requestsPerSecond: 160, pools: 20 },
];
const full: Effort = {
  surges: 400,
  steps: 200,
  steadyHours: 40,
  severalSurges: 100,
  severalPoolHours: 200,
};
const quick: Effort = {
  surges: 100,
  steps: 40,
  steadyHours: 10,
  severalSurges: 20,
  severalPoolHours: 50,
};
const SETTLING_SECONDS = 300;
const SURGE = 1.5;
const STEP = 1.2;
const LONGEST_SURGE_SECONDS = 120;
const STEP_SECONDS = 900;

function main(): void {
  const { quick: isQuick, json } = readArguments('demand');
  const effort = isQuick ? quick : full;
  console.log('One pool             rise by half, seconds until seen   false surges    rise by a fifth');
  console.log('traffic       rate     p10     p50     p90     p99      in 10 hours   one rate   surge');
  const figures: Figures[] = kinds.flatMap((traffic) =>
    rates.map((requestsPerSecond) => {
      const measured = measure({ traffic, requestsPerSecond, pools: 1 }, effort);
      console.log(lineOf(measured));
      return measured;
    }),
  );
  console.log('\nSeveral pools                all rise by half   one rises by half   false surges');
  console.log('traffic       rate  pools       p50     p90        p50     p90      in 10 hours');
  for (const flow of several) {
    const measured = measureSeveral(flow, effort);
    console.log(severalLineOf(measured));
    figures.push(measured);
  }
  if (json) writeFileSync(json, `${JSON.stringify(figures, null, 2)}\n`);
}

function measure(flow: Flow, effort: Effort): OneFigures {
  const steps = range(effort.steps).map((seed) => {
    const frontend = settled(flow, seed);
    frontend.advance(STEP_SECONDS, { factor: STEP });
    return frontend.moves;
  });
  return {
    ...flow,
    surgeSeconds: surgeSeconds(flow, effort.surges),
    falseSurges: falseSurges(flow, effort.steadyHours),
    steps: {
      one: steps.filter((moves) => moves.length === 1).length / steps.length,
      surges: steps.filter((moves) => moves.some(({ move }) => move === 'large')).length / steps.length,
    },
  };
}

function measureSeveral(flow: Flow, { severalSurges, severalPoolHours }: Effort): SeveralFigures {
  return {
    ...flow,
    surgeSeconds: surgeSeconds(flow, severalSurges),
    oneSurgeSeconds: surgeSeconds(flow, severalSurges, 1),
    falseSurges: falseSurges(flow, severalPoolHours / flow.pools),
  };
}

function settled(flow: Flow, seed: number): Frontend {
  const frontend = new Frontend(flow, seed);
  frontend.advance(SETTLING_SECONDS);
  frontend.moves = [];
  return frontend;
}

/** Until a rise of the first `risen` pools is planned for. */
function surgeSeconds(flow: Flow, surges: number, risen = flow.pools): SurgeSeconds {
  const before = (flow.requestsPerSecond / flow.pools) * risen;
  const isPlanned = ({ rates }: Moved) => sum(rates.slice(0, risen)) > 1.25 * before;
  const seconds = range(surges).map((seed) => {
    const frontend = settled(flow, seed);
    const startMs = frontend.nowMs;
    const moved = frontend.advance(LONGEST_SURGE_SECONDS, { factor: SURGE, risen }, isPlanned);
    return moved === undefined ? Number.POSITIVE_INFINITY : (moved.atMs - startMs) / 1_000;
  });
  seconds.sort((a, b) => a - b);
  const at = (share: number) => seconds[Math.floor(share * (seconds.length - 1))]!;
  return { p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}

/** In ten hours of steady traffic. */
function falseSurges(flow: Flow, hours: number): number {
  const steady = settled(flow, 1);
  steady.advance(hours * 3_600);
  let before = flow.requestsPerSecond;
  let surges = 0;
  for (const { move, rates } of steady.moves) {
    const now = sum(rates);
    if (move === 'large' && now > before) surges++;
    before = now;
  }
  return surges * (10 / hours);
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function lineOf({ traffic, requestsPerSecond, surgeSeconds, falseSurges, steps }: OneFigures): string {
  const seconds = Object.values(surgeSeconds).map((value) => secondsText(value));
  const shares = [steps.one, steps.surges].map((share) => `${(100 * share).toFixed(0)} %`.padStart(8));
  return `${flowText(traffic, requestsPerSecond)}${seconds.join('')}${falseSurges.toFixed(2).padStart(16)}   ${shares.join('')}`;
}

function severalLineOf(figures: SeveralFigures): string {
  const { traffic, requestsPerSecond, pools, surgeSeconds, oneSurgeSeconds, falseSurges } = figures;
  const [all, one] = [surgeSeconds, oneSurgeSeconds].map(
    ({ p50, p90 }) => `  ${secondsText(p50)}${secondsText(p90)}`,
  );
  const count = String(pools).padStart(7);
  return `${flowText(traffic, requestsPerSecond)}${count}${all} ${one}${falseSurges.toFixed(2).padStart(17)}`;
}

function flowText(traffic: TrafficKind, requestsPerSecond: number): string {
  return `${traffic.padEnd(11)}${`${requestsPerSecond}/s`.padStart(7)}`;
}

function secondsText(seconds: number): string {
  return (Number.isFinite(seconds) ? seconds.toFixed(2) : 'later').padStart(8);
}

main();
