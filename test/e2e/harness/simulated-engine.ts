import { fileURLToPath } from 'node:url';
import { freePorts } from '../../free-ports.js';
import { eventually, Process, START_TIMEOUT_MS } from './process.js';

const MAIN = fileURLToPath(new URL('../../../dist/simulator/engine/main.js', import.meta.url));

/** The engine simulator in a process of its own, so that it can be killed. */
export class SimulatedEngine {
  readonly id: string;
  readonly address: string;
  readonly process: Process;

  private constructor(id: string, address: string, kind: string) {
    this.id = id;
    this.address = address;
    this.process = new Process(`engine ${id}`, process.execPath, [
      ...[MAIN, '--id', id, '--listen', address, '--kind', kind],
    ]);
  }

  static async start(id: string, kind: string): Promise<SimulatedEngine> {
    const [port] = await freePorts(1);
    const engine = new SimulatedEngine(id, `127.0.0.1:${port}`, kind);
    await eventually(
      `engine ${id} to answer`,
      async () => (await fetch(`http://${engine.address}/health`)).ok,
      START_TIMEOUT_MS,
      () => engine.process.tail,
    );
    return engine;
  }
}
