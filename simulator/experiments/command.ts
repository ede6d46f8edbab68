import { writeFileSync } from 'node:fs';
import { type Command, InvalidArgumentError } from 'commander';
import { UsageError } from '../../xds-server/cli/usage-error.js';
import { policies } from '../policies/index.js';
import type { Scenario, SignalTiming } from '../virtual/scenario.js';
import { comparePolicies, type NamedPolicy } from './compare-policies.js';
import { csvReport, jsonReport } from './figures.js';
import { htmlReport } from './html-report.js';
import { RunProgress } from './run-progress.js';
import { scenarios, shortened } from './scenarios.js';
import { textReport } from './text-report.js';
import { variants } from './variants.js';

export interface CompareOptions {
  readonly scenarios?: readonly string[];
  readonly policies?: readonly string[];
  readonly seeds?: number;
  /** Longest measured time of a scenario, in seconds. */
  readonly seconds?: number;
  readonly period?: number;
  readonly delay?: number;
  readonly quick?: boolean;
  readonly json?: string;
  readonly csv?: string;
  readonly html?: string;
}

const QUICK: CompareOptions = {
  scenarios: ['three-regions', 'failure-story'],
  policies: ['nearest', 'session-pinning', 'waterfall', 'proportional', 'wardrop'],
  seeds: 3,
};
const DEFAULT_SEEDS = 5;

/** Adds `wardrop simulate`. */
export function registerSimulate(program: Command): void {
  addOptions(
    program
      .command('simulate')
      .summary('try policies in a simulated fleet')
      .description(
        'Try policies in simulated fleets, in virtual time: engines with batching and prefix caches, multi-turn ' +
          'conversations, faults. Wardrop decides with its own filter, optimizer and plans.',
      ),
  ).action(runCompare);
}

/** Options of `wardrop simulate` and of `npm run compare`. */
export function addOptions(command: Command): Command {
  return command
    .option(
      '--scenarios <names>',
      `comma-separated: ${scenarios.map(({ id }) => id).join(', ')} (default: all)`,
      list,
    )
    .option(
      '--policies <names>',
      `comma-separated: ${Object.keys({ ...policies, ...variants }).join(', ')} (default: all but variants of one)`,
      list,
    )
    .option('--seeds <n>', `runs of each with other requests (default: ${DEFAULT_SEEDS})`, positiveInteger)
    .option('--seconds <n>', 'cut the measured time of every scenario to this', positiveInteger)
    .option('--period <seconds>', 'time between reports to all policies', positive)
    .option('--delay <seconds>', 'from a report until what follows from it is in force', positive)
    .option('--quick', 'two scenarios, five policies, three seeds')
    .option('--json <file>', 'write all figures as JSON')
    .option('--csv <file>', 'write all figures as CSV')
    .option('--html <file>', 'write tables and plots as one page');
}

export async function runCompare(given: CompareOptions): Promise<void> {
  const options = given.quick ? { ...QUICK, ...given } : given;
  const progress = new RunProgress(process.stderr);
  const seeds = Array.from({ length: options.seeds ?? DEFAULT_SEEDS }, (_, index) => index + 1);
  const comparison = await comparePolicies(
    chosenScenarios(options),
    chosenPolicies(options.policies),
    seeds,
    (name, done, total) => progress.begin(name, done, total),
  );
  progress.end();
  process.stdout.write(textReport(comparison));
  if (options.json) write(options.json, `${JSON.stringify(jsonReport(comparison), null, 2)}\n`);
  if (options.csv) write(options.csv, csvReport(comparison));
  if (options.html) write(options.html, htmlReport(comparison));
}

function chosenScenarios({ scenarios: names, seconds, period, delay }: CompareOptions): Scenario[] {
  const chosen = names?.map((name) => {
    const found = scenarios.find(({ id }) => id === name);
    return (
      found ??
      unknown(
        'scenario',
        name,
        scenarios.map(({ id }) => id),
      )
    );
  });
  return (chosen ?? scenarios).map((scenario) => {
    const limit = seconds ?? Number.POSITIVE_INFINITY;
    const signals: SignalTiming = {
      periodSeconds: period ?? scenario.signals.periodSeconds,
      delaySeconds: delay ?? scenario.signals.delaySeconds,
    };
    return { ...shortened(scenario, Math.min(limit, scenario.seconds)), signals };
  });
}

function chosenPolicies(names: readonly string[] = Object.keys(policies)): NamedPolicy[] {
  const all = { ...policies, ...variants };
  return names.map((name) => ({ name, policy: all[name] ?? unknown('policy', name, Object.keys(all)) }));
}

function unknown(kind: string, name: string, known: readonly string[]): never {
  throw new UsageError(`there is no ${kind} ${JSON.stringify(name)}; there are ${known.join(', ')}`);
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`${file}: cannot be written (${(error as Error).message}). Check the path.`, 1);
  }
}

function list(text: string): string[] {
  return text.split(',').map((name) => name.trim());
}

function positive(text: string): number {
  const value = Number(text);
  if (value > 0 && Number.isFinite(value)) return value;
  throw new InvalidArgumentError('expected a number above 0');
}

function positiveInteger(text: string): number {
  const value = positive(text);
  if (Number.isInteger(value)) return value;
  throw new InvalidArgumentError('expected a whole number above 0');
}
