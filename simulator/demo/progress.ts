import type { ChatResult } from '../load/chat-request.js';
import type { Span } from './scenario.js';

/** One line that changes on a terminal; a line every ten seconds elsewhere. */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  #name = '';
  #span: Span = { warmupSeconds: 0, seconds: 0 };
  #startedAt = 0;
  #ticker: NodeJS.Timeout | undefined;
  #seconds = 0;
  #sentBefore = 0;
  #sent = 0;
  #ends: Record<ChatResult['end'], number> = { answered: 0, shed: 0, timeout: 0, error: 0 };

  constructor(out: NodeJS.WriteStream) {
    this.#out = out;
  }

  begin(name: string, span: Span): void {
    this.#name = name;
    this.#span = span;
    this.#startedAt = performance.now();
    this.#seconds = 0;
    this.#sentBefore = 0;
    this.#sent = 0;
    this.#ends = { answered: 0, shed: 0, timeout: 0, error: 0 };
    this.#ticker = setInterval(() => this.#show(), 1000);
  }

  sent(): void {
    this.#sent++;
  }

  ended(end: ChatResult['end']): void {
    this.#ends[end]++;
  }

  end(): void {
    clearInterval(this.#ticker);
    if (this.#out.isTTY) this.#out.write('\r\x1b[K');
  }

  #show(): void {
    this.#seconds = Math.round((performance.now() - this.#startedAt) / 1000);
    const rate = this.#sent - this.#sentBefore;
    this.#sentBefore = this.#sent;
    const { answered, timeout, error, shed } = this.#ends;
    const inFlight = this.#sent - answered - timeout - error - shed;
    const line =
      `${this.#name}: ${this.#stage()} · ${rate} requests/s · ${inFlight} in flight · ` +
      `${answered} answered, ${timeout} timed out, ${error} failed, ${shed} refused`;
    if (this.#out.isTTY) this.#out.write(`\r\x1b[K${line.slice(0, (this.#out.columns || 80) - 1)}`);
    else if (this.#seconds % 10 === 0) this.#out.write(`${line}\n`);
  }

  #stage(): string {
    const { warmupSeconds, seconds } = this.#span;
    if (this.#seconds < warmupSeconds) return `warming up ${this.#seconds}/${warmupSeconds} s`;
    const measured = this.#seconds - warmupSeconds;
    return measured < seconds ? `measuring ${measured}/${seconds} s` : 'waiting for the last answers';
  }
}
