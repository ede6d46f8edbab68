import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A child process whose output is kept for assertions and error messages. */
export class Process {
  readonly name: string;
  readonly #child: ChildProcess;
  #output = '';
  #exited = false;

  constructor(name: string, command: string, args: readonly string[]) {
    this.name = name;
    this.#child = spawn(command, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const keep = (chunk: Buffer): void => {
      this.#output += chunk.toString();
    };
    this.#child.stdout?.on('data', keep);
    this.#child.stderr?.on('data', keep);
    this.#child.once('exit', () => {
      this.#exited = true;
    });
    this.#child.once('error', (error) => {
      keep(Buffer.from(String(error)));
      // What was never started does not exit.
      if (this.#child.pid === undefined) this.#exited = true;
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get output(): string {
    return this.#output;
  }

  get running(): boolean {
    return !this.#exited;
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Asks the process to end and waits; insists after five seconds. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.#exited) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill(signal);
    const insist = setTimeout(() => this.#child.kill('SIGKILL'), 5_000);
    await exit;
    clearTimeout(insist);
  }
}

const POLL_MS = 50;

export type Condition<T> = () => Promise<T | undefined | false> | T | undefined | false;

/** Polls until the condition holds; the error names what was waited for, and adds what `tell` knows. */
export async function eventually<T>(
  what: string,
  condition: Condition<T>,
  timeoutMs = 20_000,
  tell: () => Promise<string> | string = () => '',
): Promise<T> {
  let deadline = Date.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const value = await condition();
      if (value !== undefined && value !== false) return value;
      last = value;
    } catch (error) {
      last = error;
    }
    if (Date.now() > deadline)
      throw new Error(`waited ${timeoutMs} ms for ${what}; last: ${String(last)}\n${await tell()}`.trimEnd());
    const sleptMs = Date.now();
    await sleep(POLL_MS);
    // On a machine that is too busy to wake this process in time, nothing that is waited for gets on, either.
    deadline += Math.max(0, Date.now() - sleptMs - POLL_MS);
  }
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
