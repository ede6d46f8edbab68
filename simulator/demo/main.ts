import { constants } from 'node:os';
import { Command, InvalidArgumentError } from 'commander';
import { WardropError } from '../../xds-server/errors.js';
import { basePort, DEFAULT_BASE_PORT } from './addresses.js';
import { Interrupted, runDemo } from './demo.js';

/** The run was complete, but the machine was too busy for its times to be trusted. */
const EXIT_INVALID = 3;
/** The command line is wrong. */
const EXIT_USAGE = 2;

const program = new Command('demo')
  .description('Three regions, three engines: first everybody uses the nearest engine, then Wardrop decides.')
  .option('--keep', 'leave Envoys, engines and control server running with load after the run')
  .option('--json <file>', 'also write the result as JSON')
  .option('--seconds <n>', 'measure so long per policy, for trying things', seconds, 60)
  .option('--base-port <n>', 'first of the 40 ports that are used', basePort, DEFAULT_BASE_PORT)
  .exitOverride(({ exitCode }) => process.exit(exitCode === 0 ? 0 : EXIT_USAGE))
  .parse();

const options = program.opts<{ keep?: true; json?: string; seconds: number; basePort: number }>();
const ending = new AbortController();
let signalNumber = 0;
for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    signalNumber = constants.signals[signal];
    ending.abort(new Interrupted(`stopped by ${signal}`));
  });
}

try {
  const { valid } = await runDemo(
    { ...options, envoyBinary: process.env.ENVOY_BIN, keep: options.keep ?? false },
    ending,
  );
  if (!valid) process.exitCode = EXIT_INVALID;
} catch (error) {
  console.error(`\n${describe(error)}`);
  process.exitCode = error instanceof Interrupted ? 128 + signalNumber : 1;
}

function describe(error: unknown): string {
  if (error instanceof WardropError) return `error: ${error.message} (${error.code})`;
  return error instanceof Error ? error.message : String(error);
}

function seconds(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('give a whole number of seconds');
  return value;
}
