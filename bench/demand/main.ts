import { writeFileSync } from 'node:fs';
import { readArguments } from '../arguments.js';
import { Frontend } from './frontend.js';
import type { TrafficKind } from './traffic.js';

/** What `--json FILE` writes, a line for each kind of traffic and rate. */
interface Figures {
  readonly traffic: TrafficKind;
  readonly requestsPerSecond: number;
  /** Seconds from a rise by half to a rate above 1.25 times the former one; infinite (in JSON null) beyond two minutes. */
  readonly surgeSeconds: {
    readonly p10: number;
    readonly p50: number;
    readonly p90: number;
    readonly p99: number;
  };
  /** Surges found in ten hours of steady traffic. */
  readonly falseSurges: number;
  /** Shares of rises by a fifth that gave one new rate, and that were taken for surges. */
  readonly steps: { readonly one: number; readonly surges: number };
}

interface Effort {
  readonly surges: number;
  readonly steps: number;
  readonly steadyHours: number;
}

const kinds: readonly TrafficKind[] = ['even', 'independent', 'batches', 'gusts'];
const rates = [5, 40, 400];
const full: Effort = { surges: 400, steps: 200, steadyHours: 40 };
const quick: Effort = { surges: 100, steps: 40, steadyHours: 10 };
const SETTLING_SECONDS = 300;
const SURGE = 1.5;
const STEP = 1.2;
const LONGEST_SURGE_SECONDS = 120;
const STEP_SECONDS = 900;

function main(): void {
  const { quick: isQuick, json } = readArguments('demand');
  const effort = isQuick ? quick : full;
  console.log('                     rise by half, seconds until seen   false surges    rise by a fifth');
  console.log('traffic       rate     p10     p50     p90     p99      in 10 hours   one rate   surge');
  const figures = kinds.flatMap((kind) =>
    rates.map((rate) => {
      const measured = measure(kind, rate, effort);
      console.log(lineOf(measured));
      return measured;
    }),
  );
  if (json) writeFileSync(json, `${JSON.stringify(figures, null, 2)}\n`);
}

function measure(traffic: TrafficKind, requestsPerSecond: number, effort: Effort): Figures {
  const seconds = range(effort.surges)
    .map((seed) => surgeSeconds(settled(traffic, requestsPerSecond, seed), requestsPerSecond))
    .sort((a, b) => a - b);
  const at = (share: number) => seconds[Math.floor(share * (seconds.length - 1))]!;
  const steady = settled(traffic, requestsPerSecond, 1);
  steady.advance(effort.steadyHours * 3_600);
  const steps = range(effort.steps).map((seed) => {
    const frontend = settled(traffic, requestsPerSecond, seed);
    frontend.advance(STEP_SECONDS, STEP);
    return frontend.moves;
  });
  return {
    traffic,
    requestsPerSecond,
    surgeSeconds: { p10: at(0.1), p50: at(0.5), p90: at(0.9), p99: at(0.99) },
    falseSurges: steady.moves.filter(({ move }) => move === 'large').length * (10 / effort.steadyHours),
    steps: {
      one: steps.filter((moves) => moves.length === 1).length / steps.length,
      surges: steps.filter((moves) => moves.some(({ move }) => move === 'large')).length / steps.length,
    },
  };
}

function settled(traffic: TrafficKind, requestsPerSecond: number, seed: number): Frontend {
  const frontend = new Frontend(traffic, requestsPerSecond, seed);
  frontend.advance(SETTLING_SECONDS);
  frontend.moves = [];
  return frontend;
}

function surgeSeconds(frontend: Frontend, before: number): number {
  const startMs = frontend.nowMs;
  const isPlanned = (moved: { requestsPerSecond: number }) => moved.requestsPerSecond > 1.25 * before;
  const moved = frontend.advance(LONGEST_SURGE_SECONDS, SURGE, isPlanned);
  return moved === undefined ? Number.POSITIVE_INFINITY : (moved.atMs - startMs) / 1_000;
}

function range(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

function lineOf({ traffic, requestsPerSecond, surgeSeconds, falseSurges, steps }: Figures): string {
  const seconds = Object.values(surgeSeconds).map((value) =>
    (Number.isFinite(value) ? value.toFixed(2) : 'later').padStart(8),
  );
  const rate = `${requestsPerSecond}/s`.padStart(7);
  const shares = [steps.one, steps.surges].map((share) => `${(100 * share).toFixed(0)} %`.padStart(8));
  return `${traffic.padEnd(11)}${rate}${seconds.join('')}${falseSurges.toFixed(2).padStart(16)}   ${shares.join('')}`;
}

main();
