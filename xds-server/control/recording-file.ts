import { createReadStream, createWriteStream } from 'node:fs';
import { createInterface } from 'node:readline';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip, type Gzip } from 'node:zlib';
import { WardropError } from '../errors.js';
import { type Recorded, RecordingReader, RecordingWriter } from './recording.js';

/**
 * What a file written by `wardrop record` holds.
 *
 * @throws {WardropError} WARDROP_RECORDING_INVALID
 */
export async function* readRecording(file: string): AsyncGenerator<Recorded> {
  const reader = new RecordingReader();
  const input = createReadStream(file);
  const text = input.pipe(createGunzip());
  input.on('error', (error) => text.destroy(error));
  try {
    for await (const line of createInterface({ input: text })) {
      const recorded = reader.read(line);
      if (recorded !== undefined) yield recorded;
    }
  } catch (error) {
    if (error instanceof WardropError) throw error;
    const { message, code } = error as NodeJS.ErrnoException;
    const why = code === 'Z_DATA_ERROR' ? `is no file of wardrop record (${message})` : message;
    throw new WardropError('WARDROP_RECORDING_INVALID', `${file}: ${why}`, { cause: error });
  }
}

/** A disk that is behind by more ends a recording: it must not cost the control server its memory. */
const MOST_BUFFERED_BYTES = 64 * 1024 * 1024;

/** Writes a recording to a file, compressed. A fault ends the recording and nothing else. */
export class RecordingFile {
  readonly #writer = new RecordingWriter();
  readonly #gzip: Gzip = createGzip();
  readonly #done: Promise<void>;

  constructor(file: string, onFault: (error: WardropError) => void) {
    this.#done = pipeline(this.#gzip, createWriteStream(file)).catch((error: Error) => {
      onFault(new WardropError('WARDROP_OUTPUT_FAILED', `${file}: ${error.message}`, { cause: error }));
    });
  }

  write(recorded: Recorded): void {
    if (this.#gzip.destroyed || this.#gzip.writableEnded) return;
    this.#gzip.write(this.#writer.write(recorded));
    if (this.#gzip.writableLength > MOST_BUFFERED_BYTES) {
      this.#gzip.destroy(new Error(`writing is behind by ${MOST_BUFFERED_BYTES} bytes`));
    }
  }

  /** Resolves when everything is in the file. */
  async close(): Promise<void> {
    this.#gzip.end();
    await this.#done;
  }
}
