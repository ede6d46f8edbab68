import type { UsageReport } from '../../../wire/usage-report.js';
import type { Address, Engine } from '../../fleet/fleet.js';
import type { ClassRate, Operations, Orders } from '../../fleet/operations.js';
import type { SignalsConfig } from '../../signals/known-config.js';
import type { OperatorRequest } from '../../signals/operator-orders.js';
import type { ProbeResult, ReplicaHealth } from '../../signals/readiness/replica-health.js';
import { SAVED_FORMAT, type SavedSignals, Signals, type SignalsView } from '../../signals/signals.js';

/** One usage report as it came in, or what the load reports of an Envoy without the filter add up to. */
export interface RecordedReport {
  readonly kind: 'report' | 'load-report';
  readonly atMs: number;
  readonly frontendId: string;
  readonly nodeId: string;
  readonly report: UsageReport;
}

/** What signals knew when a recording began, or a file of it. */
export interface KnownSignals {
  readonly kind: 'known';
  readonly atMs: number;
  readonly config: SignalsConfig;
  /** `SAVED_FORMAT` of the version that wrote it. */
  readonly format: number;
  readonly saved: SavedSignals;
}

/** Everything that signals are told, and when they are looked at. */
export type RecordedSignal = { readonly atMs: number } & (
  | RecordedReport
  | { readonly kind: 'start'; readonly config: SignalsConfig; readonly held: readonly ClassRate[] }
  | KnownSignals
  | { readonly kind: 'reconfigure'; readonly config: SignalsConfig }
  | { readonly kind: 'resume'; readonly operations: Operations }
  | {
      readonly kind: 'probe';
      readonly engineId: string;
      readonly address: Address;
      readonly result: ProbeResult;
    }
  | {
      readonly kind: 'page';
      readonly engineId: string;
      readonly address: Address;
      readonly generated?: number;
    }
  | {
      readonly kind: 'load';
      readonly engineId: string;
      readonly requests: number;
      readonly replicas: number;
      readonly leastWaiting?: number;
    }
  | { readonly kind: 'hold-up' }
  | { readonly kind: 'partial'; readonly isPartial: boolean }
  | { readonly kind: 'orders'; readonly orders: Orders }
  | { readonly kind: 'act'; readonly request: OperatorRequest }
  | { readonly kind: 'evaluate' }
  /** What the last look showed is being solved. */
  | { readonly kind: 'plan' }
);

type Recorder = (signal: RecordedSignal) => void;

/** Signals that pass on all that they are told. */
export class RecordedSignals extends Signals {
  readonly #record: Recorder;
  #config: SignalsConfig;

  constructor(config: SignalsConfig, held: readonly ClassRate[], atMs: number, record: Recorder) {
    super(config, held, atMs);
    this.#record = record;
    this.#config = config;
    record({ kind: 'start', atMs, config, held });
  }

  /** What a recording can begin with now. */
  known(atMs: number): KnownSignals {
    return { kind: 'known', atMs, config: this.#config, format: SAVED_FORMAT, saved: this.save() };
  }

  /** Goes on with what the control server knew that this one was started in the place of. */
  goOn(saved: SavedSignals, atMs: number): void {
    this.restore(saved);
    this.#record({ kind: 'known', atMs, config: this.#config, format: SAVED_FORMAT, saved });
  }

  override reconfigure(config: SignalsConfig, atMs: number): void {
    super.reconfigure(config, atMs);
    this.#config = config;
    this.#record({ kind: 'reconfigure', atMs, config });
  }

  override resume(operations: Operations, atMs: number): void {
    super.resume(operations, atMs);
    this.#record({ kind: 'resume', atMs, operations });
  }

  override noteHoldUp(atMs: number): void {
    super.noteHoldUp(atMs);
    this.#record({ kind: 'hold-up', atMs });
  }

  override notePartial(isPartial: boolean, atMs: number): void {
    super.notePartial(isPartial, atMs);
    this.#record({ kind: 'partial', atMs, isPartial });
  }

  override takeOrders(orders: Orders, atMs: number): void {
    super.takeOrders(orders, atMs);
    this.#record({ kind: 'orders', atMs, orders });
  }

  override acceptReport(frontendId: string, nodeId: string, report: UsageReport, atMs: number): void {
    super.acceptReport(frontendId, nodeId, report, atMs);
    this.#record({ kind: 'report', atMs, frontendId, nodeId, report });
  }

  override acceptLoadReport(frontendId: string, nodeId: string, report: UsageReport, atMs: number): boolean {
    const isTaken = super.acceptLoadReport(frontendId, nodeId, report, atMs);
    if (isTaken) this.#record({ kind: 'load-report', atMs, frontendId, nodeId, report });
    return isTaken;
  }

  override acceptProbe(engineId: string, address: Address, result: ProbeResult, atMs: number): ReplicaHealth {
    const health = super.acceptProbe(engineId, address, result, atMs);
    this.#record({ kind: 'probe', atMs, engineId, address, result });
    return health;
  }

  override acceptPage(
    engineId: string,
    address: Address,
    generated: number | undefined,
    atMs: number,
  ): number | undefined {
    const sinceMs = super.acceptPage(engineId, address, generated, atMs);
    const tokens = generated === undefined ? {} : { generated };
    this.#record({ kind: 'page', atMs, engineId, address, ...tokens });
    return sinceMs;
  }

  override acceptLoad(
    engine: Engine,
    requests: number,
    replicas: number,
    atMs: number,
    leastWaiting?: number,
  ): void {
    super.acceptLoad(engine, requests, replicas, atMs, leastWaiting);
    const waiting = leastWaiting === undefined ? {} : { leastWaiting };
    this.#record({ kind: 'load', atMs, engineId: engine.id, requests, replicas, ...waiting });
  }

  override act(request: OperatorRequest, atMs: number): void {
    super.act(request, atMs);
    this.#record({ kind: 'act', atMs, request });
  }

  override evaluate(atMs: number): SignalsView {
    const view = super.evaluate(atMs);
    this.#record({ kind: 'evaluate', atMs });
    return view;
  }
}
