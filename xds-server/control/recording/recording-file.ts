import { createWriteStream, type WriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { constants, createGzip, type Gzip } from 'node:zlib';
import { WardropError } from '../../errors.js';
import type { Recorded } from './recording.js';
import { RecordingOutput } from './recording-output.js';

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
