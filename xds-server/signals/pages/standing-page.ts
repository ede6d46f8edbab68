/** So many requests must have been answered of which the page knows nothing, and it must have been read so often since. */
const ENOUGH_ANSWERS = 20;
const ENOUGH_READS = 4;
/** Reports tell of answers later than pages, by less than this. */
const LATE_MS = 2_000;

/**
 * Whether the metrics page of one replica stands still: its counter of generated tokens stays as it is while Envoys see
 * requests answered there, each of which takes at least one token. What else such a page says is as old as that.
 */
export class StandingPage {
  #tokens: number | undefined;
  #sinceMs = 0;
  #reads = 0;
  #ended = 0;
  #unanswered = 0;
  /** Answered for sure, as it was known when the page was read last. */
  #answered = 0;

  /**
   * Takes attempts at this replica that ended, all after `fromMs`, and by how many more requests ended at its engine
   * meanwhile than were answered: with bad luck all of these were this replica's.
   */
  addEnded(ended: number, unanswered: number, fromMs: number): void {
    if (fromMs < this.#sinceMs + LATE_MS) return;
    this.#ended += ended;
    this.#unanswered += unanswered;
  }

  /** Takes what the page says, undefined for nothing; since when it stands still, if it does. */
  read(tokens: number | undefined, nowMs: number): number | undefined {
    if (tokens === undefined || tokens !== this.#tokens) {
      this.#tokens = tokens;
      this.#sinceMs = nowMs;
      this.#reads = 0;
      this.#ended = 0;
      this.#unanswered = 0;
      this.#answered = 0;
      return undefined;
    }
    this.#reads++;
    // Of those that were counted while the page was being read it need not know.
    const isStanding = this.#reads >= ENOUGH_READS && this.#answered >= ENOUGH_ANSWERS;
    this.#answered = Math.max(this.#answered, this.#ended - Math.max(0, this.#unanswered));
    return isStanding ? this.#sinceMs : undefined;
  }

  save() {
    return {
      tokens: this.#tokens,
      sinceMs: this.#sinceMs,
      reads: this.#reads,
      ended: this.#ended,
      unanswered: this.#unanswered,
      answered: this.#answered,
    };
  }

  restore(saved: SavedStandingPage): void {
    this.#tokens = saved.tokens;
    this.#sinceMs = saved.sinceMs;
    this.#reads = saved.reads;
    this.#ended = saved.ended;
    this.#unanswered = saved.unanswered;
    this.#answered = saved.answered;
  }
}

type SavedStandingPage = ReturnType<StandingPage['save']>;
