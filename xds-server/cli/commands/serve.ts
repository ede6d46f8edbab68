import { type Command, InvalidArgumentError } from 'commander';
import { pino } from 'pino';
import { filterRun } from '../../../simulator/filter-host/run-once.js';
import { RecordingSet } from '../../control/recording/recording-set.js';
import { ControlServer } from '../../control-server.js';
import { defaultExecutor, Optimizer } from '../../optimizer/index.js';
import { logGrpcTo } from '../../xds/index.js';
import { endAsked } from '../end-asked.js';
import { LoadedCode } from '../loaded-code.js';
import { logDestination } from '../log-destination.js';
import { readWasmModule } from '../package-files.js';
import { UsageError } from '../usage-error.js';

export function registerServe(program: Command): void {
  program
    .command('serve')
    .summary('run the control server')
    .description(
      'Run the control server: xDS and snapshots for Envoys, the admin API for operators. Logs JSON to standard ' +
        'output. Reloads the configuration when it changes and on SIGHUP; ends on SIGTERM and SIGINT.',
    )
    .requiredOption('-c, --config <file>', 'configuration file')
    .option(
      '--record <file>',
      'write all that it hears and plans to files with this name and the time at which each begins: ' +
        'fleet.jsonl.gz becomes fleet-20260131T031200123Z.jsonl.gz',
    )
    .option('--record-size <MiB>', 'go on with another file at this size', atLeastOne, 256)
    .option('--record-files <count>', 'keep so many files, and delete the oldest of more', atLeastOne, 16)
    .action(serve);
}

interface ServeOptions {
  readonly config: string;
  readonly record?: string;
  readonly recordSize: number;
  readonly recordFiles: number;
}

/** Runs until a signal asks it to end. */
async function serve(
  { config, record, recordSize, recordFiles }: ServeOptions,
  command: Command,
): Promise<void> {
  const isGiven = (option: keyof ServeOptions) => command.getOptionValueSource(option) === 'cli';
  if (record === undefined && (isGiven('recordSize') || isGiven('recordFiles')))
    throw new UsageError('--record-size and --record-files need --record');
  const log = pino({ name: 'wardrop', base: null }, logDestination());
  logGrpcTo(log);
  const die = (error: unknown) => {
    log.fatal({ err: error }, 'an unexpected error ends the control server');
    process.exit(1);
  };
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);
  const wasmModule = readWasmModule();
  const solverCode = new LoadedCode(new URL('../../optimizer/thread/worker.js', import.meta.url));
  const executor = () => {
    solverCode.check();
    return defaultExecutor();
  };
  const optimizer = new Optimizer({ executor });
  const questionSolver = new Optimizer({ executor });
  const recording =
    record === undefined
      ? undefined
      : new RecordingSet({
          name: record,
          mostBytes: recordSize * 1024 * 1024,
          mostFiles: recordFiles,
          now: Date.now,
          onFault: (err) => {
            log.error({ err }, 'the recording ends');
            server?.alarms.raise(
              'recording',
              `the recording has ended, until the next start: ${err.message}`,
            );
          },
        });
  // From the beginning on: before the server is there, they would end the process, with what it took over from the last one.
  let server: ControlServer | undefined;
  process.on('SIGHUP', () => void server?.reload('SIGHUP'));
  const end = endAsked(process, () => process.exit(1));
  try {
    server = await ControlServer.start({
      configFile: config,
      optimizer,
      questionSolver,
      wasmModule,
      runFilter: filterRun(wasmModule),
      log,
      ...(recording !== undefined && { recorder: (recorded, known) => recording.write(recorded, known) }),
    });
    recording?.begin();
    await end;
    log.info('stopping');
    await server.stop();
    log.info('stopped');
  } finally {
    await Promise.all([optimizer.close(), questionSolver.close(), recording?.close()]);
  }
}

function atLeastOne(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new InvalidArgumentError('Give a whole number of at least 1.');
  return value;
}
