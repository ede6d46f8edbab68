import type { ServerResponse } from 'node:http';

/**
 * Signals of calls that wait for news: one aborts when its caller leaves, and all when the server stops. One signal made of a
 * call's and the server's (`AbortSignal.any`) would leave something behind in the server's with every call.
 */
export class OpenCalls {
  readonly #open = new Set<AbortController>();
  #isOver = false;

  get size(): number {
    return this.#open.size;
  }

  /** Aborts at the end of the answer or of its connection, whichever way it comes. */
  untilClosed(response: ServerResponse): AbortSignal {
    const call = new AbortController();
    if (this.#isOver || response.closed) call.abort();
    else {
      this.#open.add(call);
      response.once('close', () => {
        this.#open.delete(call);
        call.abort();
      });
    }
    return call.signal;
  }

  /** Those that come later end at once, too. */
  endAll(): void {
    this.#isOver = true;
    for (const call of this.#open) call.abort();
    this.#open.clear();
  }
}
