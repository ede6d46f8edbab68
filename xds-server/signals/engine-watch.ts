import type { Address, Fleet } from '../fleet/fleet.js';
import { type EngineReading, readVllmPage } from './engine-metrics.js';
import { HttpPoller, type PollAnswer, type PollTarget } from './http-poller.js';
import { isSuspect, type ProbeResult, type ReplicaHealth } from './replica-health.js';

const PROBE_INTERVAL_MS = 500;
const PROBE_TIMEOUT_MS = 1_000;
/** A first failure is confirmed or cleared after this time. */
const SUSPECT_DELAY_MS = 100;

const SCRAPE_INTERVAL_MS = 2_000;
const SCRAPE_TIMEOUT_MS = 2_000;
const METRICS_PAGE_BYTES = 4 * 1024 * 1024;

/** The last reading of a replica's metrics page. */
export interface ReplicaReading extends EngineReading {
  readonly atMs: number;
  /** Why the page could not be read the last time; the values are then older than that. */
  readonly problem?: string;
}

/** Takes a probe result and tells what is thought of the replica now. */
export type OnProbe = (engineId: string, address: Address, result: ProbeResult) => ReplicaHealth;

/** Probes the health of every replica and reads its metrics page. */
export class EngineWatch {
  readonly #prober: HttpPoller;
  readonly #scraper: HttpPoller;
  readonly #readings = new Map<Address, ReplicaReading>();

  constructor(onProbe: OnProbe) {
    this.#prober = new HttpPoller({
      intervalMs: PROBE_INTERVAL_MS,
      timeoutMs: PROBE_TIMEOUT_MS,
      maxBytes: 0,
      onAnswer: (target, answer) => {
        const health = onProbe(target.engineId, target.address, probeResult(answer));
        return isSuspect(health) ? SUSPECT_DELAY_MS : undefined;
      },
    });
    this.#scraper = new HttpPoller({
      intervalMs: SCRAPE_INTERVAL_MS,
      timeoutMs: SCRAPE_TIMEOUT_MS,
      maxBytes: METRICS_PAGE_BYTES,
      onAnswer: (target, answer) => this.#read(target, answer),
    });
  }

  /** By replica address. */
  get readings(): ReadonlyMap<Address, ReplicaReading> {
    return this.#readings;
  }

  /** Watches the engines of this fleet and no others. */
  watch(fleet: Fleet): void {
    const targets = (path: (engine: Fleet['engines'][number]) => string | undefined) =>
      fleet.engines.flatMap((engine) => {
        const of = path(engine);
        if (of === undefined) return [];
        return engine.endpoints.map((address) => ({ engineId: engine.id, address, path: of }));
      });
    this.#prober.setTargets(targets((engine) => engine.healthPath));
    const scraped = targets(({ metrics }) => (metrics.kind === 'none' ? undefined : metrics.path));
    this.#scraper.setTargets(scraped);
    const addresses = new Set(scraped.map(({ address }) => address));
    for (const address of this.#readings.keys()) if (!addresses.has(address)) this.#readings.delete(address);
  }

  async stop(): Promise<void> {
    await Promise.all([this.#prober.stop(), this.#scraper.stop()]);
  }

  #read({ address }: PollTarget, answer: PollAnswer): undefined {
    if ('status' in answer && answer.status === 200) {
      this.#readings.set(address, { ...readVllmPage(answer.body), atMs: Date.now() });
      return;
    }
    const problem = 'status' in answer ? `status ${answer.status}` : answer.detail;
    const last = this.#readings.get(address) ?? { waiting: undefined, running: undefined, atMs: 0 };
    this.#readings.set(address, { ...last, problem });
  }
}

function probeResult(answer: PollAnswer): ProbeResult {
  if ('failure' in answer) return { ok: false, kind: answer.failure, detail: answer.detail };
  if (answer.status >= 200 && answer.status < 300) return { ok: true };
  return { ok: false, kind: 'status', detail: `status ${answer.status}` };
}
