import { BlockCache, type BlockId, type BlockTable } from './block-cache.js';
import type { EngineParameters } from './parameters.js';

export interface EngineRequest {
  readonly promptTokens: number;
  /** At least 1. */
  readonly outputTokens: number;
  /** Ids of the full blocks of prompt and output, as far as a later request could share them. */
  readonly blockIds: readonly BlockId[];
}

/** One request inside the engine. Times are seconds on the clock of whoever drives the core. */
export class Sequence {
  readonly request: EngineRequest;
  readonly arrivedAt: number;
  /** When it was first scheduled; NaN while it waits. */
  startedAt = Number.NaN;
  /** NaN before the first token. */
  firstTokenAt = Number.NaN;
  generated = 0;
  /** Prompt tokens found in the cache when it was first scheduled. */
  cachedTokens = 0;
  preemptions = 0;
  /** @internal Tokens whose keys and values are in memory. */
  computed = 0;
  /** @internal Tokens computed in the running iteration. */
  scheduled = 0;
  /** @internal */
  table: BlockTable | undefined;
  /** @internal */
  aborted = false;

  constructor(request: EngineRequest, arrivedAt: number) {
    this.request = request;
    this.arrivedAt = arrivedAt;
  }

  get finished(): boolean {
    return this.generated === this.request.outputTokens;
  }

  /** @internal Prompt and generated tokens; all must be computed before the next token comes out. */
  get known(): number {
    return this.request.promptTokens + this.generated;
  }
}

/**
 * Hears of every token, after the iteration that made it has ended and the next one has begun: it may submit and
 * abort. `sequence.generated` counts the token already.
 */
export type TokenListener = (sequence: Sequence, at: number) => void;

/**
 * The engine model: iteration-level batching as vLLM does it. Sequences that run get one token per iteration;
 * waiting ones are admitted first come, first served, as long as the batch, its token budget and the key-value
 * memory have room; their prompts are computed in chunks within the budget, leading blocks in the prefix cache are
 * not computed again. When memory runs out, the youngest sequence gives up its blocks and is computed again later.
 *
 * Pure: no clock, no socket. The driver passes its time, in seconds that never go back.
 */
export class EngineCore {
  readonly parameters: EngineParameters;
  readonly #cache: BlockCache;
  readonly #onToken: TokenListener;
  /** Preempted sequences wait before all others. */
  readonly #waiting: Sequence[] = [];
  /** In order of admission. */
  #running: Sequence[] = [];
  #stepEndsAt = Number.POSITIVE_INFINITY;
  #passedOver = 0;
  #queriedTokens = 0;
  #hitTokens = 0;
  #preemptions = 0;
  #slowness = 1;

  constructor(parameters: EngineParameters, onToken: TokenListener) {
    this.parameters = parameters;
    this.#cache = new BlockCache(parameters.kvBlocks);
    this.#onToken = onToken;
  }

  get running(): number {
    return this.#running.length;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Requests that the running iteration had no room for; those that came since are none. vLLM's page shows them as waiting. */
  get passedOver(): number {
    return this.#passedOver;
  }

  /** 0..1, share of the key-value blocks that sequences hold. */
  get kvUse(): number {
    return this.#cache.used / this.#cache.capacity;
  }

  /** Prompt tokens of all sequences that were ever scheduled, and how many of them were in the cache then. */
  get prefixCache(): { readonly queriedTokens: number; readonly hitTokens: number } {
    return { queriedTokens: this.#queriedTokens, hitTokens: this.#hitTokens };
  }

  get preemptions(): number {
    return this.#preemptions;
  }

  /** Iterations that begin from now on take this many times as long as the parameters say; 1 at first. */
  set slowness(factor: number) {
    this.#slowness = factor;
  }

  /** When the running iteration ends; Infinity when there is none. */
  get nextEventAt(): number {
    return this.#stepEndsAt;
  }

  /** Whether a request of this size can ever run. */
  fits(request: Pick<EngineRequest, 'promptTokens' | 'outputTokens'>): boolean {
    const tokens = request.promptTokens + request.outputTokens;
    return tokens <= this.parameters.maxModelTokens && this.#blocksFor(tokens) <= this.#cache.capacity;
  }

  /** Queues a request that fits; undefined when the queue is full. */
  submit(request: EngineRequest, now: number): Sequence | undefined {
    if (!this.fits(request)) throw new RangeError('the request is larger than the engine');
    this.advance(now);
    if (this.#waiting.length >= this.parameters.maxWaiting) return undefined;
    const sequence = new Sequence(request, now);
    this.#waiting.push(sequence);
    if (this.#running.length === 0) this.#beginStep(now);
    return sequence;
  }

  /** Makes these blocks present as if a sequence had just left them; not when running sequences need the room. */
  preload(blockIds: readonly BlockId[]): void {
    const hits = this.#cache.hits(blockIds, blockIds.length);
    const table = this.#cache.acquire(blockIds, hits, blockIds.length - hits);
    if (!table) return;
    this.#cache.publish(table, blockIds.length);
    this.#cache.release(table);
  }

  /** Forgets a sequence; one that runs gives its memory back at the end of the iteration. */
  abort(sequence: Sequence): void {
    sequence.aborted = true;
    const index = this.#waiting.indexOf(sequence);
    if (index >= 0) this.#waiting.splice(index, 1);
  }

  /** Ends every iteration that is over by `now` and starts the ones after it. */
  advance(now: number): void {
    while (this.#stepEndsAt <= now) {
      const at = this.#stepEndsAt;
      const emitted = this.#endStep(at);
      this.#beginStep(at);
      for (const sequence of emitted) if (!sequence.aborted) this.#onToken(sequence, at);
    }
  }

  #beginStep(at: number): void {
    const left = this.#scheduleRunning();
    if (left > 0) this.#admit(left, at);
    this.#passedOver = this.#waiting.length;
    this.#stepEndsAt = this.#running.length === 0 ? Number.POSITIVE_INFINITY : at + this.#stepSeconds();
  }

  /** Token budget left for new sequences; none when memory ran out. */
  #scheduleRunning(): number {
    let left = this.parameters.maxBatchTokens;
    let outOfMemory = false;
    for (let i = 0; i < this.#running.length; i++) {
      const sequence = this.#running[i]!;
      const tokens = Math.min(sequence.known - sequence.computed, left);
      while (sequence.table && !this.#grow(sequence, tokens)) {
        outOfMemory = true;
        this.#preemptYoungest();
      }
      if (!sequence.table) break;
      sequence.scheduled = tokens;
      left -= tokens;
    }
    return outOfMemory ? 0 : left;
  }

  #admit(budget: number, at: number): void {
    const { blockTokens, maxRunning } = this.parameters;
    let left = budget;
    while (left > 0 && this.#waiting.length > 0 && this.#running.length < maxRunning) {
      const sequence = this.#waiting[0]!;
      const { blockIds, promptTokens } = sequence.request;
      // The last known token is always computed: the next one comes out of it.
      const hits = this.#cache.hits(blockIds, Math.floor((sequence.known - 1) / blockTokens));
      const cached = hits * blockTokens;
      const tokens = Math.min(sequence.known - cached, left);
      sequence.table = this.#cache.acquire(blockIds, hits, this.#blocksFor(cached + tokens) - hits);
      if (!sequence.table) return;
      this.#waiting.shift();
      this.#running.push(sequence);
      sequence.computed = cached;
      sequence.scheduled = tokens;
      left -= tokens;
      if (sequence.preemptions > 0) continue;
      sequence.startedAt = at;
      sequence.cachedTokens = cached;
      this.#queriedTokens += promptTokens;
      this.#hitTokens += cached;
    }
  }

  /** The sequences that got a token. */
  #endStep(at: number): Sequence[] {
    const emitted: Sequence[] = [];
    const going: Sequence[] = [];
    for (const sequence of this.#running) {
      sequence.computed += sequence.scheduled;
      sequence.scheduled = 0;
      this.#cache.publish(sequence.table!, Math.floor(sequence.computed / this.parameters.blockTokens));
      if (sequence.computed === sequence.known && !sequence.aborted) {
        sequence.generated++;
        if (sequence.generated === 1) sequence.firstTokenAt = at;
        emitted.push(sequence);
      }
      if (sequence.aborted || sequence.finished) this.#release(sequence);
      else going.push(sequence);
    }
    this.#running = going;
    return emitted;
  }

  #stepSeconds(): number {
    let context = 0;
    let tokens = 0;
    for (const sequence of this.#running) {
      context += sequence.computed + sequence.scheduled;
      tokens += sequence.scheduled;
    }
    const p = this.parameters;
    return (
      this.#slowness *
      (p.stepBaseSeconds +
        p.secondsPerSequence * this.#running.length +
        p.secondsPerContextToken * context +
        p.secondsPerBatchToken * Math.max(0, tokens - p.freeBatchTokens))
    );
  }

  /** Makes room for `tokens` more computed tokens; false when there is none. */
  #grow(sequence: Sequence, tokens: number): boolean {
    const table = sequence.table!;
    const missing = this.#blocksFor(sequence.computed + tokens) - table.shared - table.own;
    return missing <= 0 || this.#cache.extend(table, missing);
  }

  #preemptYoungest(): void {
    const sequence = this.#running.pop()!;
    this.#release(sequence);
    sequence.computed = 0;
    sequence.preemptions++;
    this.#preemptions++;
    this.#waiting.unshift(sequence);
  }

  #release(sequence: Sequence): void {
    this.#cache.release(sequence.table!);
    sequence.table = undefined;
  }

  #blocksFor(tokens: number): number {
    return Math.ceil(tokens / this.parameters.blockTokens);
  }
}
