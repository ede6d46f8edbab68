import { randomBytes } from 'node:crypto';
import type { Logger } from 'pino';
import type { UsageReport } from '../../../wire/usage-report.js';
import type { Address } from '../../fleet/fleet.js';
import type { LoadReport } from '../../fleet/load-report.js';
import { URGENT_STRENGTH } from '../../signals/demand/surge.js';
import type { ProbeResult, ReplicaHealth } from '../../signals/readiness/replica-health.js';
import type { Signals } from '../../signals/signals.js';
import { LoadCounts } from '../../signals/usage/load-counts.js';
import { HoldUps } from './hold-ups.js';

export interface IntakeOptions {
  readonly signals: Signals;
  readonly log: Pick<Logger, 'info' | 'warn'>;
  /** Something was heard that calls for a look at the fleet. */
  readonly onNews: () => void;
  /** A load report came here, not to a peer. */
  readonly onLoadReport: (frontendId: string, nodeId: string, report: UsageReport) => void;
  /** When something was last heard, here or before a restart. */
  readonly heardMs: number;
  readonly now: () => number;
}

/** What comes in by sockets, on its way to signals. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #holdUps: HoldUps;

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#holdUps = new HoldUps(options.heardMs);
  }

  /** When this process last listened, or one before a restart. */
  get heardMs(): number {
    return this.#holdUps.lookedMs;
  }

  /**
   * Whether what was heard tells how things are; asked at every tick, which is how being held up is noticed. Whoever
   * waited for this process would seem to be silent.
   */
  isSettled(nowMs: number): boolean {
    this.#noteHoldUp(nowMs);
    return this.#holdUps.isSettled(nowMs);
  }

  /** Whether the next one is urgent, as a surge may have begun. */
  acceptReport(frontendId: string, nodeId: string, report: UsageReport): boolean {
    const { signals, now, onNews } = this.#options;
    const nowMs = now();
    this.#noteHoldUp(nowMs);
    signals.acceptReport(frontendId, nodeId, report, nowMs);
    const strength = signals.surgeStrength(frontendId, nowMs);
    if (strength >= 1) onNews();
    return strength >= URGENT_STRENGTH;
  }

  acceptProbe(engineId: string, address: Address, result: ProbeResult): ReplicaHealth {
    const { signals, now, onNews } = this.#options;
    const nowMs = now();
    const before = signals.health(address, nowMs);
    const health = signals.acceptProbe(engineId, address, result, nowMs);
    if (health.state !== before.state) onNews();
    return health;
  }

  /** What takes the load reports of one stream. */
  openLoadReports(frontendId: string, nodeId: string): (loads: LoadReport) => void {
    const { signals, log, now, onLoadReport } = this.#options;
    log.info({ nodeId, frontendId }, 'an Envoy reports its load');
    const counts = new LoadCounts(randomBytes(8).readBigUInt64LE());
    return (loads) => {
      const nowMs = now();
      this.#noteHoldUp(nowMs);
      const report = counts.add(loads);
      onLoadReport(frontendId, nodeId, report);
      signals.acceptLoadReport(frontendId, nodeId, report, nowMs);
    };
  }

  #noteHoldUp(nowMs: number): void {
    const { signals, log } = this.#options;
    if (!this.#holdUps.hasEnded(nowMs)) return;
    log.warn(
      'nothing could be heard for some seconds; this process goes on in a second, when it knows how things are',
    );
    signals.noteHoldUp(nowMs);
  }
}
