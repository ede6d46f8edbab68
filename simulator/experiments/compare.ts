import { constants } from 'node:os';
import { Command, CommanderError } from 'commander';
import { UsageError } from '../../xds-server/cli/usage-error.js';
import { WardropError } from '../../xds-server/errors.js';
import { calibrationReport } from '../calibration/report.js';
import { basePort, DEFAULT_BASE_PORT } from '../demo/addresses.js';
import { validate } from '../validation/validate.js';
import { addOptions, type CompareOptions, runSimulate } from './command.js';

interface Options extends CompareOptions {
  readonly calibrate?: boolean;
  readonly validate?: boolean;
  readonly basePort: number;
}

class Stopped extends Error {
  readonly status: number;

  constructor(status: number) {
    super('stopped');
    this.status = status;
  }
}

/** Real and virtual time do not agree. */
const EXIT_DIFFERS = 1;
/** The machine was too busy for real times to be trusted. */
const EXIT_INVALID = 3;
const VALIDATED_SECONDS = 45;

const program = addOptions(
  new Command('compare').description('Compare policies in simulated fleets, in virtual time.'),
)
  .option('--calibrate', 'instead: how far the engine model is from published measurements')
  .option('--validate', 'instead: the same requests on real Envoys and in virtual time (about two minutes)')
  .option('--base-port <n>', 'of the 40 ports that --validate uses', basePort, DEFAULT_BASE_PORT);

try {
  await program
    .exitOverride()
    .action((names: readonly string[], options: Options) => run(names, options))
    .parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has said what is wrong, or what was asked for.
    process.exitCode = error.exitCode === 0 ? 0 : 2;
  } else if (error instanceof UsageError) {
    console.error(error.message);
    process.exitCode = error.exitCode;
  } else if (error instanceof Stopped) {
    process.exitCode = error.status;
  } else if (error instanceof WardropError) {
    console.error(`error: ${error.message} (${error.code})`);
    process.exitCode = 2;
  } else {
    throw error;
  }
}

async function run(names: readonly string[], options: Options): Promise<void> {
  if (options.calibrate) {
    process.stdout.write(calibrationReport());
    return;
  }
  if (!options.validate) return runSimulate(names, options);
  const ending = new AbortController();
  for (const signal of ['SIGHUP', 'SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      ending.abort(new Stopped(128 + constants.signals[signal]));
    });
  }
  const { seconds = VALIDATED_SECONDS, basePort, json } = options;
  const validation = await validate(
    { seconds, basePort, envoyBinary: process.env.ENVOY_BIN, ...(json === undefined ? {} : { json }) },
    ending,
  );
  if (!validation.isValid) process.exitCode = EXIT_INVALID;
  else if (validation.comparisons.some(({ agrees }) => !agrees)) process.exitCode = EXIT_DIFFERS;
}
