import { writeFileSync } from 'node:fs';
import { inHarness, withWardrop } from '../demo/demo.js';
import { Progress } from '../demo/progress.js';
import { isValid } from '../demo/report.js';
import { MAX_LAG_MS } from '../demo/scenario.js';
import { indent, table } from '../text-table.js';
import { type Comparison, compare } from './agreement.js';
import { virtualRun } from './virtual-run.js';

/** Weights have settled, and caches are full. */
const WARMUP_SECONDS = 30;

export interface ValidateOptions {
  readonly seconds: number;
  readonly basePort: number;
  readonly envoyBinary: string | undefined;
  readonly json?: string;
}

export interface Validation {
  readonly comparisons: readonly Comparison[];
  /** The machine was quick enough for its times to be believed. */
  readonly isValid: boolean;
}

/**
 * The same requests through real Envoys, filters and a control server with HTTP engines, and in virtual time: do they
 * agree? Prints both.
 */
export async function validate(options: ValidateOptions, ending: AbortController): Promise<Validation> {
  const span = { warmupSeconds: WARMUP_SECONDS, seconds: options.seconds };
  const { result, salt } = await inHarness(options, ending, async (context) => {
    const run = await withWardrop({ ...context, name: 'real' }, span, new Progress(process.stderr));
    return { result: run.result, salt: run.wardrop.salt() };
  });
  const virtual = await virtualRun(span, salt);
  const comparisons = compare(result.policy, virtual);
  const validation = { comparisons, isValid: isValid({ wardrop: result }) };
  process.stdout.write(`${report(validation, result.lagMs)}\n`);
  if (options.json) writeFileSync(options.json, `${JSON.stringify(validation, null, 2)}\n`);
  return validation;
}

function report({ comparisons, isValid: valid }: Validation, lagMs: ReadonlyMap<string, number>): string {
  const digits = (value: number) => (value < 2 ? value.toFixed(3) : value.toFixed(1));
  const rows = comparisons.map(({ what, real, virtual, bound, agrees }) => [
    what,
    digits(real),
    digits(virtual),
    digits(Math.abs(real - virtual)),
    digits(bound),
    agrees ? 'agrees' : 'DIFFERS',
  ]);
  const lags = [...lagMs].map(([name, ms]) => `${name} ${ms.toFixed(1)} ms`).join(', ');
  const busy = valid
    ? ''
    : `\nThe machine was too busy for its times to be trusted (event loops lagged by up to ${MAX_LAG_MS} ms and more): ${lags}.`;
  return `The same requests on real Envoys and in virtual time:\n${indent(
    table([['', 'real', 'virtual', 'apart', 'bound', ''], ...rows]),
  )}${busy}`;
}
