import { accessSync, constants, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { READY_PATH } from '../../wire/names.js';
import { WardropError } from '../../xds-server/errors.js';
import { indent } from '../text-table.js';
import { addressesFrom, requireFree } from './addresses.js';
import { Children } from './children.js';
import { nearestBootstrap } from './nearest.js';
import {
  measure,
  type PhaseContext,
  type PhaseResult,
  sendLoad,
  startEngines,
  startEnvoys,
} from './phase.js';
import { Progress } from './progress.js';
import * as report from './report.js';
import { EXPLAINED, frontends, type Span, WARMUP_SECONDS } from './scenario.js';
import { PlannedWeights, Wardrop } from './wardrop.js';

export interface DemoOptions {
  readonly keep: boolean;
  readonly json?: string;
  readonly seconds: number;
  readonly basePort: number;
  readonly envoyBinary: string | undefined;
}

/** The user has ended the demo. */
export class Interrupted extends Error {}

/**
 * Runs both policies and prints what they did. `ending` is aborted when the user or a fault ends the demo; whatever
 * the end, no process and no file of ours is left.
 */
export async function runDemo(options: DemoOptions, ending: AbortController): Promise<{ valid: boolean }> {
  if (options.json) requireWritable(options.json);
  const span = { warmupSeconds: WARMUP_SECONDS, seconds: options.seconds };
  const progress = new Progress(process.stderr);
  return inHarness(options, ending, async (context) => {
    print(`${report.introduction(span)}\n`);
    const nearest = await nearestOnly({ ...context, name: 'nearest only' }, span, progress);
    print(`${report.policyReport('Nearest only', nearest)}\n`);
    const { wardrop, result } = await withWardrop({ ...context, name: 'Wardrop' }, span, progress);
    const results = { nearest, wardrop: result };
    print(`${report.policyReport('Wardrop', result)}\n`);
    print(`${report.comparison(results)}\n`);
    print(`${report.notes(results)}\n`);
    if (options.json) writeFileSync(options.json, `${JSON.stringify(report.jsonReport(results), null, 2)}\n`);
    print(`Why ${EXPLAINED.engine} serves ${EXPLAINED.frontend} as much as it does:`);
    print(indent(await wardrop.explanation(ending.signal)));
    if (options.keep) await keepRunning({ ...context, name: 'Wardrop' });
    return { valid: report.isValid(results) };
  });
}

/** Gives what phases need, and leaves no process and no file behind. */
export async function inHarness<T>(
  options: Pick<DemoOptions, 'basePort' | 'envoyBinary'>,
  ending: AbortController,
  run: (context: Omit<PhaseContext, 'name'>) => Promise<T>,
): Promise<T> {
  const envoyBinary = requireEnvoy(options.envoyBinary);
  const addresses = addressesFrom(options.basePort);
  await requireFree(addresses);
  const folder = mkdtempSync(join(tmpdir(), 'wardrop-demo-'));
  const children = new Children(folder, (error) => ending.abort(error));
  const lastMoment = () => {
    children.killAll();
    rmSync(folder, { recursive: true, force: true });
  };
  process.once('exit', lastMoment);
  try {
    return await run({ folder, envoyBinary, addresses, children, signal: ending.signal });
  } finally {
    await children.stopAll();
    lastMoment();
  }
}

async function nearestOnly(context: PhaseContext, span: Span, progress: Progress): Promise<PhaseResult> {
  const { addresses, children } = context;
  await startEngines(context);
  await startEnvoys(
    context,
    async (id) => nearestBootstrap(frontends.find((frontend) => frontend.id === id)!, addresses),
    (id) => `http://${addresses.envoyAdmin[id]}/ready`,
  );
  const weights = new Map(frontends.map(({ id, nearestEngineId }) => [id, new Map([[nearestEngineId, 1]])]));
  const result = await measure(context, span, (id) => weights.get(id)!, progress);
  await children.stopAll();
  return result;
}

/** Control server and Envoys, measured under the demo's load; they go on running. */
export async function withWardrop(
  context: PhaseContext,
  span: Span,
  progress: Progress,
): Promise<{ wardrop: Wardrop; result: PhaseResult }> {
  const { addresses, children, folder, signal } = context;
  await startEngines(context);
  const wardrop = new Wardrop(folder, addresses);
  await children
    .start('control server', process.execPath, wardrop.serveCommand)
    .ready(`http://${addresses.admin}/ready`, signal);
  await startEnvoys(
    context,
    (id) => wardrop.bootstrap(id),
    (id) => `http://${addresses.frontend[id]}${READY_PATH}`,
  );
  const weights = new PlannedWeights(wardrop);
  await weights.refresh(signal);
  const following = new AbortController();
  void weights.follow(AbortSignal.any([signal, following.signal]));
  try {
    return { wardrop, result: await measure(context, span, (id) => weights.of(id), progress) };
  } finally {
    following.abort();
  }
}

/** Goes on with the load until the user has seen enough. */
async function keepRunning(context: PhaseContext): Promise<void> {
  const { addresses, signal } = context;
  print('\nEverything goes on, with its load. To look at:');
  print(`  control server   http://${addresses.admin}/`);
  for (const { id } of frontends) {
    print(
      `  Envoy ${id.padEnd(10)} http://${addresses.envoyAdmin[id]}/ takes requests on ${addresses.frontend[id]}`,
    );
  }
  print('Ctrl-C stops it all.');
  await sendLoad(context, 'keep', Number.POSITIVE_INFINITY, () => () => {});
  if (!(signal.reason instanceof Interrupted)) throw signal.reason;
}

function requireEnvoy(binary: string | undefined): string {
  const remedy = 'Start the demo with `npm run demo`, which finds or fetches Envoy.';
  if (!binary) throw new WardropError('WARDROP_ENVOY_MISSING', `ENVOY_BIN is not set. ${remedy}`);
  try {
    accessSync(binary, constants.X_OK);
  } catch (cause) {
    throw new WardropError('WARDROP_ENVOY_MISSING', `ENVOY_BIN is no program: ${binary}. ${remedy}`, {
      cause,
    });
  }
  return binary;
}

function requireWritable(file: string): void {
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats?.isDirectory()) throw new Error('it is a folder');
    accessSync(stats ? file : dirname(file), constants.W_OK);
  } catch (cause) {
    throw new WardropError(
      'WARDROP_OUTPUT_FAILED',
      `${file} cannot be written: ${(cause as Error).message}. Check --json.`,
      { cause },
    );
  }
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
