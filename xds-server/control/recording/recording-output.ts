import type { Writable } from 'node:stream';
import type { Recorded } from './recording.js';
import { RecordingWriter } from './recording-writer.js';

/** A reader or disk that is behind by more is given up: a recording must not cost the control server its memory. */
const MOST_BUFFERED_BYTES = 64 * 1024 * 1024;
/** What is known at the beginning of a recording waits for a reader that is behind by so much, and all else for that. */
const PAUSE_BYTES = 16 * 1024 * 1024;
const MOST_WAITING = 100_000;
/** It is written in pieces of about this time, between which the control server does its work. */
const PIECE_MS = 5;

interface Waiting {
  readonly lines: Iterator<string>;
  readonly isBeginning: boolean;
}

/** Writes a recording to a stream, which is destroyed when it is too far behind. */
export class RecordingOutput {
  readonly #stream: Writable;
  readonly #writer = new RecordingWriter();
  readonly #waiting: Waiting[] = [];
  #isPaused = false;
  #isEnding = false;
  #surplus = 0;

  constructor(stream: Writable) {
    this.#stream = stream;
  }

  /** Whether more is in it than what was known at its beginning. */
  get hasMore(): boolean {
    return this.#surplus > 0;
  }

  write(recorded: Recorded): void {
    if (this.#stream.destroyed || this.#isEnding) return;
    this.#waiting.push({ lines: this.#writer.lines(recorded), isBeginning: recorded.kind === 'known' });
    if (this.#waiting.length > MOST_WAITING) this.#giveUp(`${MOST_WAITING} lines`);
    else if (!this.#isPaused) this.#goOn();
  }

  /** Ends the stream after all that was written. */
  end(): void {
    this.#isEnding = true;
    if (this.#waiting.length === 0) this.#stream.end();
  }

  #goOn(): void {
    const untilMs = performance.now() + PIECE_MS;
    this.#isPaused = false;
    while (this.#waiting.length > 0 && !this.#isPaused) {
      const { lines, isBeginning } = this.#waiting[0]!;
      const { done, value } = lines.next();
      if (done === true) this.#waiting.shift();
      else this.#put(value, isBeginning, untilMs);
      if (this.#stream.destroyed) return;
    }
    if (this.#isEnding && this.#waiting.length === 0) this.#stream.end();
  }

  #put(line: string, isBeginning: boolean, untilMs: number): void {
    this.#stream.write(line);
    this.#surplus += isBeginning ? -line.length : line.length;
    const { writableLength } = this.#stream;
    if (writableLength > MOST_BUFFERED_BYTES) {
      this.#giveUp(`${MOST_BUFFERED_BYTES} bytes`);
    } else if (isBeginning && writableLength > PAUSE_BYTES) {
      this.#isPaused = true;
      this.#stream.once('drain', () => this.#goOn());
    } else if (performance.now() > untilMs) {
      this.#isPaused = true;
      setImmediate(() => this.#goOn());
    }
  }

  #giveUp(behindBy: string): void {
    this.#waiting.length = 0;
    this.#stream.destroy(new Error(`writing is behind by ${behindBy}`));
  }
}
