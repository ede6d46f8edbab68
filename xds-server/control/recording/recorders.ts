import type { Recorded, RecordedSolve } from './recording.js';

export type Recorder = (recorded: Recorded) => void;

/** Those that what happens is passed on to. */
export class Recorders {
  readonly #first: Recorder | undefined;
  readonly #later = new Set<Recorder>();
  #lastSolve: RecordedSolve | undefined;

  /** `first` gets solves and all that signals are told, from the first moment on. */
  constructor(first: Recorder | undefined) {
    this.#first = first;
  }

  /** Passes on the last solve, and from now on every solve and usage report; the result ends that. */
  add(recorder: Recorder): () => void {
    if (this.#lastSolve !== undefined) recorder(this.#lastSolve);
    this.#later.add(recorder);
    return () => this.#later.delete(recorder);
  }

  record(recorded: Recorded): void {
    if (recorded.kind === 'solve') this.#lastSolve = recorded;
    this.#first?.(recorded);
    // The rest only helps those who have had it from the first moment on.
    if (!isSolveOrReport(recorded)) return;
    for (const recorder of this.#later) recorder(recorded);
  }
}

function isSolveOrReport({ kind }: Recorded): boolean {
  return kind === 'solve' || kind === 'report' || kind === 'load-report';
}
