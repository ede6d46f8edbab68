import { Counter, collectDefaultMetrics, Histogram, Registry } from 'prom-client';
import { type Nack, shortType } from '../../xds/index.js';
import type { ShownServer } from '../shown-server.js';
import { registerEnvoys } from './envoys.js';
import { type Family, familiesText } from './family.js';
import { registerFleet } from './fleet.js';
import { registerPlan } from './plan.js';
import { registerSignals } from './signals.js';
import { usageFamilies } from './usage.js';

const SOLVE_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/**
 * The control server's metrics. Events are counted as they happen; everything else is read from the server when the
 * page is asked for. All labels are ids of the configuration or members of short fixed lists, so that no caller can
 * add series.
 */
export class ServerMetrics {
  readonly #registry = new Registry();
  readonly #families: Family[] = [];
  readonly #solveSeconds: Histogram;
  readonly #solves: Counter<'result'>;
  readonly #syncCalls: Counter<'status'>;
  readonly #nacks: Counter<'type'>;
  readonly #reloads: Counter<'result'>;

  constructor(server: ShownServer) {
    const registers = [this.#registry];
    collectDefaultMetrics({ register: this.#registry });
    this.#solveSeconds = new Histogram({
      name: 'wardrop_solve_seconds',
      help: 'Time from the start of a solve to the checked plan.',
      buckets: SOLVE_BUCKETS,
      registers,
    });
    this.#solves = new Counter({
      name: 'wardrop_solves_total',
      help: 'Solves by result: ok or an error code.',
      labelNames: ['result'],
      registers,
    });
    this.#syncCalls = new Counter({
      name: 'wardrop_sync_calls_total',
      help: 'Calls of filters by HTTP status.',
      labelNames: ['status'],
      registers,
    });
    this.#nacks = new Counter({
      name: 'wardrop_nacks_total',
      help: 'Rejections by Envoys by resource type.',
      labelNames: ['type'],
      registers,
    });
    this.#reloads = new Counter({
      name: 'wardrop_config_reloads_total',
      help: 'Reloads of the configuration by result.',
      labelNames: ['result'],
      registers,
    });
    registerPlan(server, this.#families);
    registerFleet(server, this.#families);
    registerSignals(server, this.#families);
    this.#families.push(...usageFamilies(server));
    registerEnvoys(server, this.#families);
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** The page in Prometheus' text format, in pieces. */
  async page(): Promise<Iterable<string>> {
    return pieces(await this.#registry.metrics(), familiesText(this.#families));
  }

  observeSolve(seconds: number, failure: string | undefined): void {
    this.#solveSeconds.observe(seconds);
    this.#solves.inc({ result: failure ?? 'ok' });
  }

  countSync(status: number): void {
    this.#syncCalls.inc({ status: String(status) });
  }

  countNack({ typeUrl }: Nack): void {
    this.#nacks.inc({ type: shortType(typeUrl) });
  }

  countReload(isGood: boolean): void {
    this.#reloads.inc({ result: isGood ? 'ok' : 'error' });
  }
}

function* pieces(first: string, rest: Iterable<string>): Generator<string> {
  yield first;
  yield* rest;
}
