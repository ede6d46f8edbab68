import { splitAddress, targetText } from '../../fleet/address.js';
import type { Address, Engine, Fleet } from '../../fleet/fleet.js';
import type { Upstream } from '../../fleet/upstream.js';
import { now } from '../../steady-clock.js';
import {
  isSuspect,
  type ProbeFailure,
  type ProbeResult,
  type ReplicaHealth,
} from '../readiness/replica-health.js';
import { PageReader } from './engine-metrics.js';
import { HttpPoller, type PollAnswer, type PollTarget } from './http-poller.js';
import { signalMapping } from './metric-names.js';
import { ReplicaReading } from './replica-reading.js';

const PROBE_INTERVAL_MS = 500;
const PROBE_TIMEOUT_MS = 1_000;
/** A first failure is confirmed or cleared after this time. */
const SUSPECT_DELAY_MS = 100;

const SCRAPE_INTERVAL_MS = 2_000;
const SCRAPE_TIMEOUT_MS = 2_000;
const METRICS_PAGE_BYTES = 4 * 1024 * 1024;

/** Takes a probe result and tells what is thought of the replica now. */
export type OnProbe = (engineId: string, address: Address, result: ProbeResult) => ReplicaHealth;

/** Takes the tokens that a page says were generated, undefined for nothing, and tells since when it stands still, if it does. */
export type OnPage = (
  engineId: string,
  address: Address,
  generated: number | undefined,
) => number | undefined;

/** Probes the health of every replica and reads its metrics page. */
export class EngineWatch {
  readonly #prober: HttpPoller;
  readonly #scraper: HttpPoller;
  readonly #onPage: OnPage;
  readonly #readings = new Map<Address, ReplicaReading>();
  /** By engine id. */
  #readers: ReadonlyMap<string, { readonly source: string; readonly reader: PageReader }> = new Map();

  /** `onFault` takes what is thrown about one answer, which keeps no other from being read. */
  constructor(onProbe: OnProbe, onPage: OnPage, onFault: (error: unknown) => void) {
    this.#onPage = onPage;
    this.#prober = new HttpPoller({
      onFault,
      intervalMs: PROBE_INTERVAL_MS,
      timeoutMs: PROBE_TIMEOUT_MS,
      maxBytes: 0,
      onAnswer: (target, answer) => {
        const result = probeResult(answer);
        if (result === undefined) return undefined;
        const health = onProbe(target.engineId, target.address, result);
        return isSuspect(health) ? SUSPECT_DELAY_MS : undefined;
      },
    });
    this.#scraper = new HttpPoller({
      onFault,
      intervalMs: SCRAPE_INTERVAL_MS,
      timeoutMs: SCRAPE_TIMEOUT_MS,
      maxBytes: METRICS_PAGE_BYTES,
      onAnswer: (target, answer) => this.#read(target, answer),
    });
  }

  /** By replica address; replicas whose page is to be read, whether it was or not. */
  get readings(): ReadonlyMap<Address, ReplicaReading> {
    return this.#readings;
  }

  /** Watches the engines of this fleet and no others. */
  watch(fleet: Fleet, upstreams: ReadonlyMap<string, Upstream> = new Map()): void {
    const spokenTo = (engineId: string) => {
      const upstream = upstreams.get(engineId);
      return upstream && { upstream };
    };
    const scraped = fleet.engines.filter(({ metrics }) => metrics.kind !== 'none');
    this.#expect(scraped);
    this.#prober.setTargets(
      fleet.engines.flatMap(({ id, endpoints, healthPath }) =>
        endpoints.map((address) => ({
          engineId: id,
          address,
          asked: address,
          path: healthPath,
          ...spokenTo(id),
        })),
      ),
    );
    this.#scraper.setTargets(
      scraped.flatMap(({ id, endpoints, metrics: { path, port } }) =>
        endpoints.map((address) => ({
          engineId: id,
          address,
          asked: withPort(address, port),
          path,
          ...spokenTo(id),
        })),
      ),
    );
  }

  async stop(): Promise<void> {
    await Promise.all([this.#prober.stop(), this.#scraper.stop()]);
  }

  /** Forgets readings of replicas that are gone or whose page is read otherwise now. */
  #expect(engines: readonly Engine[]): void {
    const before = this.#readers;
    const addresses = new Set(engines.flatMap(({ endpoints }) => endpoints));
    for (const address of this.#readings.keys()) if (!addresses.has(address)) this.#readings.delete(address);
    const readers = new Map<string, { source: string; reader: PageReader }>();
    for (const { id, endpoints, metrics } of engines) {
      const source = JSON.stringify(metrics);
      const known = before.get(id);
      const isSame = known?.source === source;
      const mapping = signalMapping(metrics);
      readers.set(id, isSame ? known : { source, reader: new PageReader(mapping) });
      for (const address of endpoints) {
        if (!isSame || !this.#readings.has(address))
          this.#readings.set(address, new ReplicaReading(mapping.keys()));
      }
    }
    this.#readers = readers;
  }

  #read({ engineId, address }: PollTarget, answer: PollAnswer): undefined {
    const reading = this.#readings.get(address);
    const reader = this.#readers.get(engineId)?.reader;
    if (reading === undefined || reader === undefined) return;
    if ('failure' in answer) reading.fail(answer.detail, now());
    else if (answer.status !== 200) reading.fail(statusOf(answer), now());
    else {
      const page = reader.read(answer.body);
      const generated = page.get('generatedTokens');
      const tokens = generated !== undefined && 'value' in generated ? generated.value : undefined;
      if (this.#onPage(engineId, address, tokens) === undefined) reading.accept(page, now());
      else reading.fail('the page stands still while the replica answers', now());
    }
  }
}

function withPort(address: Address, port: number | undefined): Address {
  return port === undefined ? address : targetText({ host: splitAddress(address).host, port });
}

function statusOf({ status, location }: { readonly status: number; readonly location?: string }): string {
  return location === undefined ? `status ${status}` : `status ${status}, which points to ${location}`;
}

/** Undefined where nobody was asked. */
function probeResult(answer: PollAnswer): ProbeResult | undefined {
  if ('failure' in answer) {
    const { failure, detail } = answer;
    return failure === 'unasked' ? undefined : { ok: false, kind: failure, detail };
  }
  if (answer.status >= 200 && answer.status < 300) return { ok: true };
  return { ok: false, kind: failureBy(answer.status), detail: statusOf(answer) };
}

function failureBy(status: number): ProbeFailure {
  if (status === 503) return 'unavailable';
  return status === 400 ? 'unready' : 'status';
}
