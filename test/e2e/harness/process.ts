import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** To start a process takes a second, and much longer on a busy machine. */
export const START_TIMEOUT_MS = 60_000;
/** To end takes a moment. */
const END_TIMEOUT_MS = 30_000;
/** End of an output that is told. */
const TAIL_CHARACTERS = 4_000;

/** A child process whose output is kept for assertions and error messages. */
export class Process {
  /** All that have not ended yet. */
  static readonly alive = new Set<Process>();
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
    Process.alive.add(this);
    const ended = (): void => {
      this.#exited = true;
      Process.alive.delete(this);
    };
    this.#child.once('exit', ended);
    this.#child.once('error', (error) => {
      keep(Buffer.from(String(error)));
      // What was never started does not exit.
      if (this.#child.pid === undefined) ended();
    });
  }

  get pid(): number {
    return this.#child.pid!;
  }

  get output(): string {
    return this.#output;
  }

  /** The end of its output. */
  get tail(): string {
    return this.#output.slice(-TAIL_CHARACTERS).trimEnd();
  }

  get running(): boolean {
    return !this.#exited;
  }

  /** For how long its threads were ready to run while the machine was busy with others; 0 where the system does not tell. */
  get waitedMs(): number {
    const tasks = `/proc/${this.pid}/task`;
    try {
      const waits = readdirSync(tasks).map((task) =>
        Number(readFileSync(join(tasks, task, 'schedstat'), 'utf8').split(' ')[1]),
      );
      return waits.reduce((sum, nanoseconds) => sum + nanoseconds, 0) / 1e6;
    } catch {
      return 0;
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Asks the process to end and waits. One that does not end, or not in order, is a fault; it is killed all the same. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#exited) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill(signal);
    const insist = setTimeout(() => this.#child.kill('SIGKILL'), END_TIMEOUT_MS);
    const [code, killedBy] = await exit;
    clearTimeout(insist);
    if (signal === 'SIGTERM' && code !== 0)
      throw new Error(`${this.name} ended by ${code ?? killedBy} when it was asked to:\n${this.tail}`);
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
