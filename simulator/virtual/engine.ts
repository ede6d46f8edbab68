import { EngineCore, type EngineRequest, type Sequence } from '../engine/engine-core.js';
import type { EngineParameters } from '../engine/parameters.js';
import type { EnginePage, EngineTelemetry } from '../policies/policy.js';

/** Hears when the answer to a request begins and when it is complete, in seconds of the run. */
export interface AnswerListener<R> {
  firstToken(request: R, sequence: Sequence, at: number): void;
  lastToken(request: R, sequence: Sequence, at: number): void;
}

/** An engine that may die and come back, with the requests `R` that it works on. */
export class Engine<R> {
  readonly #parameters: EngineParameters;
  readonly #listener: AnswerListener<R>;
  readonly #requests = new Map<Sequence, R>();
  #core: EngineCore;
  #isDown = false;
  /** Since the telemetry before. */
  #completed = 0;
  #ttftSum = 0;
  #ttftCount = 0;
  #tbotSum = 0;

  constructor(parameters: EngineParameters, listener: AnswerListener<R>) {
    this.#parameters = parameters;
    this.#listener = listener;
    this.#core = this.#newCore();
  }

  get isDown(): boolean {
    return this.#isDown;
  }

  /** Infinity when it has nothing to do. */
  get nextEventAt(): number {
    return this.#core.nextEventAt;
  }

  /** Requests that run or wait. */
  get load(): number {
    return this.#core.running + this.#core.waiting;
  }

  /** What its metrics page says now. */
  get page(): EnginePage {
    return { waiting: this.#core.passedOver, kvUse: this.#core.kvUse };
  }

  /** Times of its iterations are multiplied by it. */
  set slowness(factor: number) {
    this.#core.slowness = factor;
  }

  advance(at: number): void {
    this.#core.advance(at);
  }

  /** Undefined where it is full or down. */
  submit(request: R, content: EngineRequest, at: number): Sequence | undefined {
    if (this.#isDown) return undefined;
    const sequence = this.#core.submit(content, at);
    if (sequence) this.#requests.set(sequence, request);
    return sequence;
  }

  abort(sequence: Sequence): void {
    this.#core.abort(sequence);
    this.#requests.delete(sequence);
  }

  /** Has these tokens of a prompt in its cache, as far as they fill blocks. */
  preload({ blockIds }: EngineRequest, tokens: number): void {
    this.#core.preload(blockIds.slice(0, Math.floor(tokens / this.#parameters.blockTokens)));
  }

  /** Dies, and returns the requests that are lost with it. */
  lose(): readonly R[] {
    const lost = [...this.#requests.values()];
    this.#requests.clear();
    this.#core = this.#newCore();
    this.#isDown = true;
    return lost;
  }

  /** With an empty cache. */
  bringBack(): void {
    this.#core = this.#newCore();
    this.#isDown = false;
  }

  /** What its metrics page shows of the period; starts the next one. */
  telemetry(ready: boolean, periodSeconds: number): EngineTelemetry {
    const telemetry = {
      ready,
      running: this.#core.running,
      waiting: this.#core.waiting,
      completedRps: this.#completed / periodSeconds,
      ttftSeconds: this.#ttftSum / this.#ttftCount,
      tbotSeconds: this.#tbotSum / this.#completed,
    };
    this.#completed = this.#ttftSum = this.#ttftCount = this.#tbotSum = 0;
    return telemetry;
  }

  #newCore(): EngineCore {
    return new EngineCore(this.#parameters, (sequence, at) => {
      if (sequence.generated === 1) this.#firstToken(sequence, at);
      if (sequence.finished) this.#lastToken(sequence, at);
    });
  }

  #firstToken(sequence: Sequence, at: number): void {
    this.#ttftSum += at - sequence.arrivedAt;
    this.#ttftCount++;
    this.#listener.firstToken(this.#requests.get(sequence)!, sequence, at);
  }

  #lastToken(sequence: Sequence, at: number): void {
    const request = this.#requests.get(sequence)!;
    this.#requests.delete(sequence);
    this.#completed++;
    const gaps = Math.max(1, sequence.request.outputTokens - 1);
    this.#tbotSum += (at - sequence.firstTokenAt) / gaps;
    this.#listener.lastToken(request, sequence, at);
  }
}
