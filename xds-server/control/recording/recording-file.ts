import { createReadStream, createWriteStream, type WriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createGunzip, createGzip, type Gzip } from 'node:zlib';
import { WardropError } from '../../errors.js';
import { type Recorded, RecordingReader } from './recording.js';
import { recordingFiles } from './recording-names.js';
import { RecordingOutput } from './recording-output.js';

/** No line of a recording is nearly as long; what is no recording must not fill the memory. */
const MOST_LINE_CHARACTERS = 128 * 1024 * 1024;

/**
 * What a file written by `wardrop record` holds, or the files of `wardrop serve --record` with this name, in their order.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function* readRecording(name: string): AsyncGenerator<Recorded> {
  for (const file of await recordingFiles(name)) yield* readFile(file);
}

async function* readFile(file: string): AsyncGenerator<Recorded> {
  const reader = new RecordingReader();
  const input = createReadStream(file);
  const text = input.pipe(createGunzip()).setEncoding('utf8');
  input.on('error', (error) => text.destroy(error));
  try {
    for await (const line of linesOf(text)) {
      const recorded = reader.read(line);
      if (recorded !== undefined) yield recorded;
    }
  } catch (error) {
    // A file that was never closed ends anywhere, maybe within a line, which is left out then.
    if ((error as NodeJS.ErrnoException).code === 'Z_BUF_ERROR') return;
    throw asInvalid(error, file);
  }
}

/** Only line feeds end a line: JSON may hold what else passes for an end elsewhere. */
async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let rest = '';
  for await (const chunk of text) {
    const end = chunk.lastIndexOf('\n');
    if (end < 0) rest += chunk;
    else {
      yield* (rest + chunk.slice(0, end)).split('\n');
      rest = chunk.slice(end + 1);
    }
    if (rest.length > MOST_LINE_CHARACTERS)
      throw new Error(`holds a line of more than ${MOST_LINE_CHARACTERS} characters`);
  }
  if (rest !== '') yield rest;
}

function asInvalid(error: unknown, file: string): WardropError {
  const { message, code } = error as NodeJS.ErrnoException;
  const why = code === 'Z_DATA_ERROR' ? `is damaged, or no file of wardrop record (${message})` : message;
  return new WardropError('WARDROP_RECORDING_INVALID', `${file}: ${why}`, { cause: error });
}

/** What is older is on the disk, also when the control server is killed. */
const FLUSH_MS = 1_000;

/** Writes a recording to a new file, compressed. A fault ends the recording and nothing else. */
export class RecordingFile {
  readonly #gzip: Gzip = createGzip();
  readonly #lines = new RecordingOutput(this.#gzip);
  readonly #output: WriteStream;
  readonly #done: Promise<void>;
  #flusher: NodeJS.Timeout | undefined;

  constructor(file: string, onFault: (error: WardropError) => void) {
    this.#output = createWriteStream(file, { flags: 'wx' });
    this.#done = pipeline(this.#gzip, this.#output).catch((error: Error) => {
      onFault(new WardropError('WARDROP_OUTPUT_FAILED', `${file}: ${error.message}`, { cause: error }));
    });
  }

  /** Whether it has these many compressed bytes, and not most of them for what was known at its beginning. */
  isFull(bytes: number): boolean {
    return this.#output.bytesWritten >= bytes && this.#lines.hasMore;
  }

  write(recorded: Recorded): void {
    if (this.#gzip.destroyed || this.#gzip.writableEnded) return;
    this.#lines.write(recorded);
    this.#flusher ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  /** Resolves when everything is in the file. */
  async close(): Promise<void> {
    clearTimeout(this.#flusher);
    this.#lines.end();
    await this.#done;
  }

  #flush(): void {
    this.#flusher = undefined;
    if (!this.#gzip.destroyed && !this.#gzip.writableEnded) this.#gzip.flush(constants.Z_SYNC_FLUSH);
  }
}
