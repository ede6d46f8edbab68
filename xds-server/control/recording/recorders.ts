import type { Recorded, RecordedSolve } from './recording.js';

/** Takes what happens; `known` is what to begin another file with. */
export type Recorder = (recorded: Recorded, known: () => Recorded) => void;

/** Those that what happens is passed on to. */
export class Recorders {
  readonly #known: () => Recorded;
  readonly #all = new Set<Recorder>();
  #lastSolve: RecordedSolve | undefined;

  /** `first` gets everything from the first moment on; `known` tells what signals know. */
  constructor(first: Recorder | undefined, known: () => Recorded) {
    this.#known = known;
    if (first !== undefined) this.#all.add(first);
  }

  /** Passes on the last solve, what signals know, and from now on all that happens; the result ends that. */
  add(recorder: Recorder): () => void {
    if (this.#lastSolve !== undefined) recorder(this.#lastSolve, this.#known);
    recorder(this.#known(), this.#known);
    this.#all.add(recorder);
    return () => this.#all.delete(recorder);
  }

  record(recorded: Recorded): void {
    if (recorded.kind === 'solve') this.#lastSolve = recorded;
    for (const recorder of this.#all) recorder(recorded, this.#known);
  }
}
