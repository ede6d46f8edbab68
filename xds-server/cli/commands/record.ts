import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Command } from 'commander';
import { readRecording } from '../../control/recording/read-recording.js';
import { type Replayed, replayAll } from '../../control/recording/replay.js';
import { WardropError } from '../../errors.js';
import { messageOf } from '../../message-of.js';
import { Optimizer } from '../../optimizer/index.js';
import { durationWithin } from '../duration.js';
import { adminUrl, noAnswer, refuseStranger, type SourceOptions, withSource } from '../source.js';
import { formatTable } from '../table.js';
import { UsageError } from '../usage-error.js';

interface RecordOptions extends SourceOptions {
  readonly out: string;
  readonly force?: boolean;
  readonly for?: number;
}

export function registerRecord(program: Command): void {
  withSource(
    program
      .command('record')
      .summary('write what the control server hears and plans to a file')
      .description(
        'Write what signals know, all that they are told from then on and every solve to a compressed file, until ' +
          'interrupted or for a time. The last solve before the start is its first one.',
      )
      .requiredOption('-o, --out <file>', 'file to write, such as fleet.jsonl.gz')
      .option('--force', 'write over a file that is there')
      // Timers that are set for longer than 2^31 ms, 24.8 days, end at once.
      .option('--for <time>', 'end after this time, such as 30s, 10m or 4h', durationWithin('1s', '24d')),
  ).action(record);
  program
    .command('replay')
    .summary('make the plans of a recording again')
    .description(
      'Tell signals again what was recorded, solve every recorded input again, and compare the states and the plans ' +
        'byte for byte. Exit status 1: one differs.',
    )
    .argument('<file>', 'written by wardrop record, or the name that wardrop serve --record was given')
    .option('--json', 'print JSON')
    .action(replayFile);
}

async function record(options: RecordOptions): Promise<void> {
  const base = adminUrl(options);
  const controller = new AbortController();
  const end = () => controller.abort();
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
  const timer = options.for === undefined ? undefined : setTimeout(end, options.for * 1_000);
  let brokenOff: string | undefined;
  try {
    const response = await fetch(new URL('/v1/record', base), { signal: controller.signal }).catch(
      (error) => {
        throw noAnswer(base, error);
      },
    );
    refuseStranger(base, response);
    if (!response.ok || response.body === null) throw new UsageError(`${base}: status ${response.status}`, 1);
    await pipeline(
      untilEnd(response.body, (error) => {
        if (!controller.signal.aborted) brokenOff = error.message;
      }),
      createGzip(),
      createWriteStream(options.out, { flags: options.force === true ? 'w' : 'wx' }),
    );
  } catch (error) {
    if (error instanceof UsageError) throw error;
    const { code } = error as NodeJS.ErrnoException;
    const why =
      code === 'EEXIST'
        ? 'is there already; give another name, or --force to write over it'
        : messageOf(error);
    throw new WardropError('WARDROP_OUTPUT_FAILED', `${options.out}: ${why}`, { cause: error });
  } finally {
    clearTimeout(timer);
    process.off('SIGINT', end);
    process.off('SIGTERM', end);
  }
  if (brokenOff !== undefined) {
    const kept = `${options.out} holds what it told before`;
    throw new UsageError(`the control server at ${base} broke off (${brokenOff}); ${kept}`, 1);
  }
  console.log(`recorded to ${options.out}`);
}

/** Ends as a stream does, not with an error, however it ends, so that the file is complete. */
function untilEnd(body: ReadableStream<Uint8Array>, onError: (error: Error) => void): Readable {
  async function* chunks(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) yield chunk;
    } catch (error) {
      onError(error as Error);
    }
  }
  return Readable.from(chunks());
}

async function replayFile(file: string, { json }: { json?: boolean }): Promise<void> {
  const optimizer = new Optimizer();
  const results: Replayed[] = [];
  let fault: unknown;
  try {
    for await (const replayed of replayAll(optimizer, readRecording(file))) results.push(replayed);
  } catch (error) {
    fault = error;
  } finally {
    await optimizer.close();
  }
  // What came before the damage is worth its reading.
  if (results.length > 0) console.log(json === true ? JSON.stringify(results, null, 2) : describe(results));
  if (fault !== undefined) throw fault;
  if (results.length === 0)
    throw new WardropError('WARDROP_RECORDING_INVALID', `${file}: holds no solve to make again`);
  const plans = results.filter(({ isSame }) => !isSame).length;
  const states = results.filter(({ isSameState }) => isSameState === false).length;
  if (plans + states === 0) return;
  throw new UsageError(
    `of ${results.length} solves ${plans} plans and ${states} states differ from the recorded ones`,
    1,
  );
}

function describe(results: readonly Replayed[]): string {
  const rows = results.map(({ atMs, sequence, planId, isSame, isSameState, failedThen, failedNow }) => [
    new Date(atMs).toISOString(),
    String(sequence ?? '-'),
    planId ?? '-',
    isSame ? 'same' : 'DIFFERENT',
    isSameState === null ? '-' : isSameState ? 'same' : 'DIFFERENT',
    [...(failedThen === null ? [] : ['failed then']), ...(failedNow === null ? [] : ['fails now'])].join(
      ', ',
    ),
  ]);
  const table = formatTable([['time', 'plan', 'id', 'again', 'signals', 'solve'], ...rows]);
  const notes = [
    ...(results.every(({ isSameState }) => isSameState !== null)
      ? []
      : [
          'signals: - of a plan that was begun before the recording or a file of it, or without what they knew in a form of this version',
        ]),
    ...reasons(
      'failed then',
      results.map(({ failedThen }) => failedThen),
    ),
    ...reasons(
      'fails now',
      results.map(({ failedNow }) => failedNow),
    ),
  ];
  return [table, ...notes].join('\n\n');
}

/** Each once. */
function reasons(what: string, failures: readonly (string | null)[]): string[] {
  return [...new Set(failures)].flatMap((failure) => (failure === null ? [] : [`${what}: ${failure}`]));
}
