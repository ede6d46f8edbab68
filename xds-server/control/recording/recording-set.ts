import { rm } from 'node:fs/promises';
import { basename } from 'node:path';
import { WardropError } from '../../errors.js';
import type { Recorder } from './recorders.js';
import type { Recorded } from './recording.js';
import { RecordingFile } from './recording-file.js';
import { fileBegunAt, filesOf } from './recording-names.js';

export interface RecordingSetOptions {
  /** Such as `fleet.jsonl.gz`; the time at which a file begins is added to its name. */
  readonly name: string;
  /** A file of this size is followed by another one. */
  readonly mostBytes: number;
  /** So many files are kept, those of former runs included. */
  readonly mostFiles: number;
  readonly now: () => number;
  readonly onFault: (error: WardropError) => void;
}

/** A recording in files that follow each other; no file is ever written over. A fault ends it. */
export class RecordingSet {
  readonly #options: RecordingSetOptions;
  #file: RecordingFile | undefined;
  /** What is to be written once the first file begins. */
  readonly #early: Parameters<Recorder>[] = [];
  #begunMs = 0;
  #hasEnded = false;
  /** Everything that has to be done before the recording is complete. */
  #pending: Promise<unknown> = Promise.resolve();

  constructor(options: RecordingSetOptions) {
    this.#options = options;
  }

  /** Begins the first file. Before, what is written only waits: a run that fails to start must push no older file out. */
  begin(): void {
    this.#begunMs = this.#options.now();
    this.#file = this.#open();
    for (const early of this.#early.splice(0)) this.write(...early);
  }

  /** Writes what has happened; `known` is what signals know after it, with which the next file begins. */
  write(recorded: Recorded, known: () => Recorded): void {
    if (this.#hasEnded) return;
    if (this.#file === undefined) {
      this.#early.push([recorded, known]);
      return;
    }
    this.#file.write(recorded);
    if (!this.#file.isFull(this.#options.mostBytes)) return;
    this.#file = this.#next(this.#file);
    this.#file.write(known());
  }

  /** Resolves when everything is on the disk. */
  async close(): Promise<void> {
    if (this.#file !== undefined) this.#after(this.#file.close());
    await this.#pending;
  }

  /** The file that follows this one. */
  #next(file: RecordingFile): RecordingFile {
    this.#after(file.close());
    this.#begunMs = Math.max(this.#begunMs + 1, this.#options.now());
    return this.#open();
  }

  #open(): RecordingFile {
    this.#after(this.#prune());
    const file = fileBegunAt(this.#options.name, this.#begunMs);
    return new RecordingFile(file, (error) => this.#end(error));
  }

  /** Leaves room for the file that begins now, which may or may not be there yet. */
  async #prune(): Promise<void> {
    const { name, mostFiles } = this.#options;
    const current = basename(fileBegunAt(name, this.#begunMs));
    try {
      const others = (await filesOf(name)).filter((file) => basename(file) < current);
      const excess = others.slice(0, Math.max(0, others.length - (mostFiles - 1)));
      await Promise.all(excess.map((file) => rm(file, { force: true })));
    } catch (error) {
      const { message } = error as Error;
      this.#end(new WardropError('WARDROP_OUTPUT_FAILED', `${name}: ${message}`, { cause: error }));
    }
  }

  #end(fault: WardropError): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#options.onFault(fault);
  }

  #after(work: Promise<unknown>): void {
    this.#pending = Promise.all([this.#pending, work]);
  }
}
