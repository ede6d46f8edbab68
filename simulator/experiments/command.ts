import { accessSync, constants, existsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { Argument, type Command, InvalidArgumentError } from 'commander';
import { UsageError } from '../../xds-server/cli/usage-error.js';
import { messageOf } from '../../xds-server/message-of.js';
import { suggest } from '../../xds-server/suggest.js';
import { policies } from '../policies/index.js';
import { namedScenario, scenarioNames } from '../scenario-file/library.js';
import { loadScenario, type ScenarioPlan } from '../scenario-file/load.js';
import { scenarioOfRecording } from '../scenario-file/recording.js';
import { checkAssertions } from './assertions.js';
import { comparePolicies, type NamedPolicy } from './compare-policies.js';
import type { Comparison } from './comparison.js';
import { csvReport, jsonReport } from './figures.js';
import { htmlReport } from './html-report.js';
import { RunProgress } from './run-progress.js';
import { shortened } from './shortened.js';
import { textReport } from './text-report.js';
import { variants } from './variants.js';

export interface CompareOptions {
  /** Names of scenarios that come with Wardrop, or files. */
  readonly scenarios?: readonly string[];
  readonly policies?: readonly string[];
  readonly seeds?: number;
  /** Longest measured time of a scenario, in seconds. */
  readonly seconds?: number;
  readonly period?: number;
  readonly delay?: number;
  readonly quick?: boolean;
  readonly list?: boolean;
  /** File written by `wardrop record`. */
  readonly recording?: string;
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
const allPolicies = { ...policies, ...variants };

/** Adds `wardrop simulate`. */
export function registerSimulate(program: Command): void {
  addOptions(
    program
      .command('simulate')
      .summary('try policies in a simulated fleet')
      .description(
        'Try policies in simulated fleets, in virtual time: engines with batching and prefix caches, multi-turn ' +
          'conversations, faults. Wardrop decides with its own filter, optimizer and plans. Exit status 1: an ' +
          'assertion of a scenario does not hold.',
      ),
  ).action(runSimulate);
}

/** Options of `wardrop simulate` and of `npm run compare`. */
export function addOptions(command: Command): Command {
  return command
    .addArgument(
      new Argument('[scenarios...]', 'scenario files, or names that --list shows (default: all of these)'),
    )
    .option('--list', 'list the scenarios that come with Wardrop, and the policies')
    .option(
      '--policies <names>',
      'comma-separated, as --list shows (default: those of the scenario, else all but variants of one)',
      list,
    )
    .option(
      '--recording <file>',
      'what would have happened to a fleet of one’s own: a file by wardrop record',
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

/** What the command line asks for. */
export function runSimulate(names: readonly string[], options: CompareOptions): Promise<void> {
  return runCompare(names.length === 0 ? options : { ...options, scenarios: names });
}

export async function runCompare(given: CompareOptions): Promise<void> {
  if (given.list) return listAll();
  const options = given.quick ? { ...QUICK, ...given } : given;
  for (const file of [options.json, options.csv, options.html]) if (file) checkFolder(file);
  const plans = await chosenPlans(options);
  const comparison = await compareAll(plans, options);
  process.stdout.write(textReport(comparison));
  if (options.json) write(options.json, `${JSON.stringify(jsonReport(comparison), null, 2)}\n`);
  if (options.csv) write(options.csv, csvReport(comparison));
  if (options.html) write(options.html, htmlReport(comparison));
  const failed = comparison.assertions.filter(({ result }) => result === 'fails').length;
  if (failed > 0)
    throw new UsageError(`${failed} of ${comparison.assertions.length} assertions do not hold`, 1);
}

async function compareAll(plans: readonly ScenarioPlan[], options: CompareOptions): Promise<Comparison> {
  const { seconds, period, delay } = options;
  const isChanged = [seconds, period, delay].some((value) => value !== undefined);
  const parts = plans.map((plan) => ({
    scenario: changed(plan, options),
    policies: chosenPolicies(options.policies ?? plan.policies),
    seeds: Array.from({ length: options.seeds ?? plan.seeds ?? DEFAULT_SEEDS }, (_, index) => index + 1),
  }));
  const progress = new RunProgress(process.stderr);
  const comparison = await comparePolicies(parts, (name, done, total) => progress.begin(name, done, total));
  progress.end();
  if (isChanged) return comparison;
  const assertions = plans.flatMap(({ scenario, assertions: own }) =>
    checkAssertions(scenario.id, own, comparison.cells),
  );
  return { ...comparison, assertions };
}

async function chosenPlans({ recording, scenarios }: CompareOptions): Promise<ScenarioPlan[]> {
  const recorded = recording === undefined ? undefined : await scenarioOfRecording(recording);
  const named = scenarios ?? (recorded === undefined ? scenarioNames() : []);
  return [...(recorded ? [{ scenario: recorded, assertions: [] }] : []), ...named.map(chosenScenario)];
}

function chosenScenario(name: string): ScenarioPlan {
  const known = scenarioNames();
  const policyNames = Object.keys(allPolicies);
  if (known.includes(name)) return namedScenario(name, policyNames);
  if (existsSync(name)) return loadScenario(name, policyNames);
  return unknown('scenario or file', name, known);
}

function changed({ scenario }: ScenarioPlan, { seconds, period, delay }: CompareOptions) {
  const signals = {
    periodSeconds: period ?? scenario.signals.periodSeconds,
    delaySeconds: delay ?? scenario.signals.delaySeconds,
  };
  return { ...shortened(scenario, seconds ?? scenario.seconds), signals };
}

function chosenPolicies(names: readonly string[] = Object.keys(policies)): NamedPolicy[] {
  return names.map((name) => ({
    name,
    policy: allPolicies[name] ?? unknown('policy', name, Object.keys(allPolicies)),
  }));
}

function listAll(): void {
  const names = scenarioNames();
  const width = Math.max(...names.map(({ length }) => length));
  const lines = names.map(
    (name) => `  ${name.padEnd(width)}  ${namedScenario(name, Object.keys(allPolicies)).scenario.about}`,
  );
  process.stdout.write(
    `scenarios:\n${lines.join('\n')}\n\npolicies:\n  ${Object.keys(policies).join('\n  ')}\n\n` +
      `variants:\n  ${Object.keys(variants).join('\n  ')}\n`,
  );
}

function unknown(kind: string, name: string, known: readonly string[]): never {
  const hint = suggest(name, known) ?? `there are ${known.join(', ')}`;
  throw new UsageError(`there is no ${kind} ${JSON.stringify(name)}; ${hint}`);
}

/** Before minutes of runs, rather than after them. */
function checkFolder(file: string): void {
  try {
    accessSync(dirname(file), constants.W_OK);
  } catch (error) {
    throw new UsageError(`${file}: cannot be written: ${messageOf(error)}`, 1);
  }
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`${file}: cannot be written: ${messageOf(error)}`, 1);
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
