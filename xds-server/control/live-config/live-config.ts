import type { Logger } from 'pino';
import type { Config } from '../../config/config.js';
import { readFromDisk } from '../../config/document/read-file.js';
import { loadConfig } from '../../config/load.js';
import { ConfigError, MOST_TOLD } from '../../config/problem.js';
import type { Address } from '../../fleet/fleet.js';
import { type Discovered, Discovery } from '../../signals/discovery/discovery.js';
import { type Lookup, systemLookup } from '../../signals/discovery/lookup.js';
import type { Alarms } from '../alarms/alarms.js';
import type { Faults } from '../alarms/faults.js';
import { isSameConfig, takeOver, waitingForRestart } from './config-difference.js';
import { ConfigWatch } from './config-watch.js';
import { isUndiscovered, withDiscovered } from './discovered-fleet.js';

/** Start and reload wait this long for replicas that are to be found; later ones are taken when they come. */
const DISCOVERY_WAIT_MS = 3_000;

export interface LiveConfigEvents {
  readonly alarms: Alarms;
  readonly faults: Pick<Faults, 'note'>;
  readonly log: Logger;
  /** The file was read again; false when it has problems. */
  readonly onRead: (isGood: boolean) => void;
  /** Resolves when the configuration may be exchanged. */
  readonly idle: () => Promise<void>;
  /** `current` is another one from now on. */
  readonly onChange: () => void;
}

/** The configuration in force: what the file said when it was last good, with the replicas that were found. */
export class LiveConfig {
  readonly #file: string;
  readonly #watch: ConfigWatch;
  readonly #discovery: Discovery;
  /** As it was read, without replicas that were found. */
  #written: Config;
  #current: Config;
  #generation = 0;
  #events: LiveConfigEvents | undefined;
  #reloading: Promise<boolean> = Promise.resolve(true);
  #isStopped = false;

  private constructor(file: string, config: Config, watch: ConfigWatch, lookup: Lookup) {
    this.#file = file;
    this.#written = config;
    this.#current = config;
    this.#watch = watch;
    this.#discovery = new Discovery({ lookup, onChange: () => void this.#rediscover() });
  }

  /**
   * Reads the file.
   *
   * @throws {ConfigError} for a configuration with problems
   */
  static read(file: string, lookup: Lookup = systemLookup()): LiveConfig {
    const watch = new ConfigWatch();
    const config = loadConfig(file, watch.reading(), readFromDisk);
    return new LiveConfig(file, config, watch, lookup);
  }

  get current(): Config {
    return this.#current;
  }

  /** Grows with every configuration. */
  get generation(): number {
    return this.#generation;
  }

  hasFrontend(id: string): boolean {
    return this.#current.fleet.frontends.some((frontend) => frontend.id === id);
  }

  /** What is known of replicas that are looked for, by engine id. */
  get discovered(): ReadonlyMap<string, Discovered> {
    return this.#discovery.discovered;
  }

  /** What is wrong with the discovery of an engine, by its id. */
  get discoveryProblems(): ReadonlyMap<string, string> {
    return withDiscovered(this.#written, this.discovered).problems;
  }

  /** Whether a pool has nobody only because nothing is known yet of engines that are to be found. */
  get isUndiscovered(): boolean {
    return isUndiscovered(this.#current.fleet, this.#current.discovery, this.discovered);
  }

  /** Looks for replicas; `known` are those of a former run. */
  async discover(known: ReadonlyMap<string, readonly Address[]>): Promise<void> {
    await atMost(DISCOVERY_WAIT_MS, this.#discovery.watch(this.#written.discovery, known));
    this.#current = withDiscovered(this.#written, this.discovered).config;
  }

  /** Takes changes of the file and of replicas from now on, and those of replicas since `discover`. */
  follow(events: LiveConfigEvents): void {
    this.#events = events;
    this.#watch.start(async () => void (await this.reload('the file changed')));
    void this.#rediscover();
  }

  /** Reads the file again; true when it is in force, false when it has problems and nothing changed. */
  reload(reason: string): Promise<boolean> {
    return this.#inTurn(() => this.#reload(reason));
  }

  /** Waits for a reload under way. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#discovery.stop();
    await this.#watch.stop();
    await this.#reloading;
  }

  async #reload(reason: string): Promise<boolean> {
    const { alarms, log, onRead } = this.#events!;
    let config: Config;
    try {
      config = loadConfig(this.#file, this.#watch.reading(), readFromDisk);
    } catch (error) {
      // Also of a fault of our own that some file brings about: the server goes on with what it has.
      if (error instanceof ConfigError) {
        const told = error.problems.slice(0, MOST_TOLD);
        for (const problem of told) log.error({ ...problem }, 'configuration problem');
      } else log.error({ err: error }, 'the configuration cannot be read');
      onRead(false);
      alarms.raise(
        'config',
        `the configuration in force stays, because the new one has problems:\n${(error as Error).message}`,
      );
      return false;
    }
    onRead(true);
    alarms.clear('config');
    const waiting = waitingForRestart(this.#current.server, config.server);
    if (waiting.length === 0) alarms.clear('restart-needed');
    else alarms.raise('restart-needed', `changes of ${waiting.join(', ')} take effect at the next start`);
    // What is looked for now and was listed before stays until it is found.
    const engines = this.#current.fleet.engines.filter(({ endpoints }) => endpoints.length > 0);
    const known = new Map(engines.map(({ id, endpoints }) => [id, endpoints]));
    await atMost(DISCOVERY_WAIT_MS, this.#discovery.watch(config.discovery, known));
    this.#written = config;
    for (const warning of config.warnings) log.warn({ ...warning }, warning.message);
    const before = this.#current;
    const isApplied = await this.#apply(reason);
    if (this.#current === before) log.info({ reason }, 'nothing is different for what is in force');
    return isApplied;
  }

  /** Takes the replicas that are known now. */
  #rediscover(): void {
    if (this.#events === undefined) return;
    void this.#inTurn(() => this.#apply('replicas came or went'));
  }

  /** One change after the other; one that fails keeps none from being made later. */
  #inTurn(change: () => Promise<boolean>): Promise<boolean> {
    this.#reloading = this.#reloading.then(change).catch((error) => {
      this.#events!.faults.note('configuration', error);
      return false;
    });
    return this.#reloading;
  }

  /** Puts in force what was read last, with the replicas that were found. */
  async #apply(reason: string): Promise<boolean> {
    const { log, idle, onChange } = this.#events!;
    const { config } = withDiscovered(this.#written, this.discovered);
    const next = takeOver(this.#current, config);
    if (isSameConfig(next, this.#current)) return true;
    await idle();
    if (this.#isStopped) return false;
    this.#current = next;
    this.#generation++;
    onChange();
    log.info({ reason }, 'configuration in force');
    return true;
  }
}

function atMost(ms: number, work: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  return Promise.race([work, timeout]).finally(() => clearTimeout(timer));
}
