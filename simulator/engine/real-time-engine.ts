import { EngineCore, type EngineRequest, type Sequence, type TokenListener } from './engine-core.js';
import type { EngineParameters } from './parameters.js';

/** Drives an engine model by the wall clock. */
export class RealTimeEngine {
  readonly core: EngineCore;
  #timer: NodeJS.Timeout | undefined;

  constructor(parameters: EngineParameters, onToken: TokenListener) {
    this.core = new EngineCore(parameters, onToken);
  }

  submit(request: EngineRequest): Sequence | undefined {
    const sequence = this.core.submit(request, now());
    this.#arm();
    return sequence;
  }

  close(): void {
    clearTimeout(this.#timer);
  }

  /** Iterations end when the model says, not when the timer fires: a late timer delays tokens but never the model. */
  #arm(): void {
    clearTimeout(this.#timer);
    const at = this.core.nextEventAt;
    if (at === Number.POSITIVE_INFINITY) return;
    this.#timer = setTimeout(
      () => {
        this.core.advance(now());
        this.#arm();
      },
      Math.max(0, (at - now()) * 1000),
    );
  }
}

function now(): number {
  return performance.now() / 1000;
}
