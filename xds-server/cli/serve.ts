import type { Command } from 'commander';
import { pino } from 'pino';
import { RecordingFile } from '../control/recording-file.js';
import { ControlServer } from '../control-server.js';
import { Optimizer } from '../optimizer/index.js';
import { readWasmModule } from './package-files.js';

export function registerServe(program: Command): void {
  program
    .command('serve')
    .summary('run the control server')
    .description(
      'Run the control server: xDS and snapshots for Envoys, the admin API for operators. Logs JSON to standard ' +
        'output. Reloads the configuration when it changes and on SIGHUP; ends on SIGTERM and SIGINT.',
    )
    .requiredOption('-c, --config <file>', 'configuration file')
    .option('--record <file>', 'write all that it hears and plans to this file, such as fleet.jsonl.gz')
    .action(async ({ config, record }: { config: string; record?: string }) => serve(config, record));
}

/** Runs until a signal asks it to end. */
async function serve(configFile: string, recordFile: string | undefined): Promise<void> {
  const log = pino({ name: 'wardrop', base: null });
  const die = (error: unknown) => {
    log.fatal({ err: error }, 'an unexpected error ends the control server');
    process.exit(1);
  };
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);
  const wasmModule = readWasmModule();
  const optimizer = new Optimizer();
  const questionSolver = new Optimizer();
  const recording =
    recordFile === undefined
      ? undefined
      : new RecordingFile(recordFile, (err) => log.error({ err }, 'the recording ends'));
  try {
    const server = await ControlServer.start({
      configFile,
      optimizer,
      questionSolver,
      wasmModule,
      log,
      ...(recording !== undefined && { recorder: (recorded) => recording.write(recorded) }),
    });
    process.on('SIGHUP', () => void server.reload('SIGHUP'));
    await asked(['SIGTERM', 'SIGINT']);
    log.info('stopping');
    await server.stop();
    log.info('stopped');
  } finally {
    await Promise.all([optimizer.close(), questionSolver.close(), recording?.close()]);
  }
}

/** Resolves at the first of these signals; the next one ends the process at once. */
function asked(signals: readonly NodeJS.Signals[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      process.once(signal, () => {
        resolve();
        process.once(signal, () => process.exit(1));
      });
    }
  });
}
