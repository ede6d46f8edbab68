import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { eventually, Process } from '../../e2e/harness/process.js';
import { PATIENCE_MS } from '../../patience.js';

/** Path of Envoy: ENVOY_BIN, else what the repository's own script finds or fetches. */
export async function envoyBinary(): Promise<string> {
  if (process.env.ENVOY_BIN) return process.env.ENVOY_BIN;
  const script = new URL('../../../scripts/envoy.mjs', import.meta.url).href;
  const { ensureEnvoy } = (await import(script)) as { ensureEnvoy(): Promise<string> };
  return ensureEnvoy();
}

/** Runs Envoy on a bootstrap, in a folder of its own. */
export class Envoy {
  readonly process: Process;
  readonly #folder: string;

  private constructor(
    process: Process,
    folder: string,
    readonly adminUrl: string,
  ) {
    this.process = process;
    this.#folder = folder;
  }

  static async start(bootstrap: JsonObject, admin: string): Promise<Envoy> {
    const folder = mkdtempSync(join(tmpdir(), 'wardrop-envoy-'));
    const file = join(folder, 'bootstrap.json');
    writeFileSync(file, JSON.stringify(bootstrap));
    const options = ['--concurrency', '1', '--disable-hot-restart', '--log-level', 'warning'];
    const process = new Process('envoy', await envoyBinary(), ['-c', file, ...options]);
    return new Envoy(process, folder, `http://${admin}`);
  }

  /** Waits until Envoy has all that it needs to serve. */
  async ready(): Promise<void> {
    await eventually(
      'Envoy to be ready',
      async () => {
        if (!this.process.running) throw new Error('Envoy ended');
        return (await fetch(`${this.adminUrl}/ready`)).ok;
      },
      PATIENCE_MS,
      () => this.process.tail,
    );
  }

  /** Weight, health and priority of each host of a cluster, as Envoy applies them. */
  async hosts(
    cluster: string,
  ): Promise<Record<string, { weight: number; health: string; priority: number }>> {
    const text = await (await fetch(`${this.adminUrl}/clusters`)).text();
    const hosts: Record<string, { weight: number; health: string; priority: number }> = {};
    for (const line of text.split('\n')) {
      const [name, address, key, value] = line.split('::');
      if (name !== cluster || address === undefined || value === undefined || !address.includes(':'))
        continue;
      hosts[address] ??= { weight: 0, health: '', priority: 0 };
      const host = hosts[address];
      if (key === 'weight') host.weight = Number(value);
      if (key === 'health_flags') host.health = value;
      if (key === 'priority') host.priority = Number(value);
    }
    return hosts;
  }

  /** Value of a counter or gauge; undefined when Envoy doesn't have it. */
  async stat(name: string): Promise<number | undefined> {
    const text = await (await fetch(`${this.adminUrl}/stats?filter=^${name}$`)).text();
    const value = text.trim().split(': ')[1];
    return value === undefined ? undefined : Number(value);
  }

  /** Runtime values in force, by key. */
  async runtime(): Promise<Record<string, string>> {
    const response = await fetch(`${this.adminUrl}/runtime`);
    const { entries } = (await response.json()) as { entries: Record<string, { final_value: string }> };
    return Object.fromEntries(Object.entries(entries).map(([key, value]) => [key, value.final_value]));
  }

  async stop(): Promise<void> {
    await this.process.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
