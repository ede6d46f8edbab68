import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse, stringify } from 'yaml';
import type { Plan } from '../../xds-server/plan/plan.js';
import type { Addresses } from './addresses.js';
import { fleetConfig, STATE_FILE } from './fleet-config.js';
import type { Weights } from './measurement.js';
import { EXPLAINED } from './scenario.js';

const CLI = fileURLToPath(new URL('../../xds-server/cli/main.js', import.meta.url));
const POLL_MS = 250;

/** The control server by its public command and API. */
export class Wardrop {
  readonly #configFile: string;
  readonly #addresses: Addresses;

  constructor(folder: string, addresses: Addresses) {
    this.#configFile = join(folder, 'fleet.yaml');
    this.#addresses = addresses;
    writeFileSync(this.#configFile, stringify(fleetConfig(addresses)));
  }

  get serveCommand(): string[] {
    return [CLI, 'serve', '-c', this.#configFile];
  }

  /** What `wardrop bootstrap` prints for a frontend. */
  async bootstrap(frontendId: string): Promise<object> {
    const admin = this.#addresses.envoyAdmin[frontendId]!;
    const args = [CLI, 'bootstrap', '-c', this.#configFile, '--frontend', frontendId, '--admin', admin];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    return parse(stdout) as object;
  }

  async plan(signal: AbortSignal): Promise<Plan> {
    return JSON.parse(await this.#get('/v1/plan', 'application/json', signal)) as Plan;
  }

  /** What the control server mixes into hashes of keys. */
  salt(): string {
    const { salt } = JSON.parse(readFileSync(join(dirname(this.#configFile), STATE_FILE), 'utf8')) as {
      salt: string;
    };
    return salt;
  }

  /** Why one weight is what it is, in words. */
  explanation(signal: AbortSignal): Promise<string> {
    return this.#get(`/v1/explain?${new URLSearchParams(EXPLAINED)}`, 'text/plain', signal);
  }

  async #get(path: string, accept: string, signal: AbortSignal): Promise<string> {
    const response = await fetch(`http://${this.#addresses.admin}${path}`, { headers: { accept }, signal });
    const text = await response.text();
    if (!response.ok) throw new Error(`The control server answers ${path} with ${response.status}: ${text}`);
    return text;
  }
}

/** The weights in force, by frontend; follows the control server's plan. */
export class PlannedWeights {
  readonly #wardrop: Wardrop;
  readonly #byFrontend = new Map<string, Weights>();

  constructor(wardrop: Wardrop) {
    this.#wardrop = wardrop;
  }

  of(frontendId: string): Weights {
    return this.#byFrontend.get(frontendId) ?? new Map();
  }

  async refresh(signal: AbortSignal): Promise<void> {
    const { rows } = await this.#wardrop.plan(signal);
    for (const { frontendId, weights } of rows) {
      this.#byFrontend.set(frontendId, new Map(weights.map(({ engineId, weight }) => [engineId, weight])));
    }
  }

  /** Until the signal. A poll that fails is a gap of a quarter of a second; a control server that dies ends the demo. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.refresh(signal).catch(() => {});
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
