import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const TAIL_LINES = 20;
const PATIENCE_MS = 5000;

/** A process that the demo started and nobody else stops. */
export class Child {
  readonly name: string;
  readonly #process: ChildProcess;
  readonly #logFile: string;
  readonly #exited: Promise<void>;
  #stopping = false;

  constructor(
    name: string,
    command: string,
    args: readonly string[],
    logFile: string,
    onFailure: (error: Error) => void,
  ) {
    this.name = name;
    this.#logFile = logFile;
    const log = openSync(logFile, 'w');
    // Detached: Ctrl-C in a terminal reaches the demo alone, which then stops everything in order.
    this.#process = spawn(command, args, { stdio: ['ignore', log, log], detached: true });
    closeSync(log);
    this.#exited = new Promise((resolve) => {
      this.#process.once('error', (error) => {
        resolve();
        onFailure(new Error(`${name} cannot be started: ${error.message}`));
      });
      this.#process.once('exit', (status, signal) => {
        resolve();
        if (!this.#stopping) onFailure(this.#failure(`ended by itself (${signal ?? `status ${status}`})`));
      });
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** Polls until the URL answers 2xx; what failed, with the end of the log, otherwise. */
  async ready(url: string, signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + 30_000;
    let last = '';
    while (performance.now() < deadline) {
      signal.throwIfAborted();
      try {
        const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(2000)]) });
        const text = await response.text();
        if (response.ok) return;
        last = `${response.status} ${text}`;
      } catch (error) {
        last = String((error as Error).cause ?? error);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw this.#failure(`is not ready: ${url} answers ${last}`);
  }

  /** Asks it to end, insists after a while, and waits. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#process.kill('SIGTERM');
    const insist = setTimeout(() => this.kill(), PATIENCE_MS);
    await this.#exited;
    clearTimeout(insist);
  }

  kill(): void {
    this.#stopping = true;
    this.#process.kill('SIGKILL');
  }

  #failure(what: string): Error {
    const tail = readFileSync(this.#logFile, 'utf8').trimEnd().split('\n').slice(-TAIL_LINES);
    return new Error(
      `${this.name} ${what}. The end of its log:\n${tail.map((line) => `  ${line}`).join('\n')}`,
    );
  }
}

/** The processes of the demo. One that ends by itself ends the demo. */
export class Children {
  readonly #folder: string;
  readonly #onFailure: (error: Error) => void;
  readonly #running = new Set<Child>();

  /** Logs go into the folder. */
  constructor(folder: string, onFailure: (error: Error) => void) {
    this.#folder = folder;
    this.#onFailure = onFailure;
  }

  start(name: string, command: string, args: readonly string[]): Child {
    const logFile = join(this.#folder, `${name.replaceAll(' ', '-')}.log`);
    const child = new Child(name, command, args, logFile, this.#onFailure);
    this.#running.add(child);
    return child;
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.#running].map((child) => child.stop()));
    this.#running.clear();
  }

  /** For the last moment of the process, when nothing can be awaited. */
  killAll(): void {
    for (const child of this.#running) child.kill();
  }
}
