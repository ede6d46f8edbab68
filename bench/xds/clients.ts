import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ClientOrder, ClientReport } from './client-process.js';

const PROCESS = fileURLToPath(new URL('client-process.js', import.meta.url));

/** A process of clients, as seen from the server's. */
export class Clients {
  readonly #process: ChildProcess;
  readonly #reports: Record<ClientReport['kind'], ClientReport[]> = { response: [], raw: [] };
  #wake: () => void = () => {};

  constructor() {
    this.#process = fork(PROCESS);
    this.#process.on('message', (report: ClientReport) => {
      this.#reports[report.kind].push(report);
      this.#wake();
    });
    this.#process.once('exit', (code) => {
      if (code) throw new Error(`the clients ended with ${code}`);
    });
  }

  get pid(): number {
    return this.#process.pid!;
  }

  send(order: ClientOrder): void {
    this.#process.send(order);
  }

  /** When each stream had its next response. */
  async next(kind: ClientReport['kind']): Promise<readonly number[]> {
    const reports = this.#reports[kind];
    while (reports.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    return reports.shift()!.atMs;
  }

  signal(name: NodeJS.Signals): void {
    this.#process.kill(name);
  }

  stop(): void {
    this.#process.removeAllListeners('exit');
    this.#process.kill('SIGKILL');
  }
}
