import { isDeepStrictEqual } from 'node:util';
import { WardropError } from '../../errors.js';
import type { Engine } from '../../fleet/fleet.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import type { SignalsConfig } from '../../signals/known-config.js';
import { SAVED_FORMAT, Signals } from '../../signals/signals.js';
import type { KnownSignals, RecordedSignal } from './recorded-signals.js';

/** For something in a recording that cannot be used. */
export function damaged({ kind, atMs }: { kind: string; atMs: number }, cause: Error): WardropError {
  const what = `the ${kind} of ${atMs} ms is damaged: ${cause.message}`;
  return new WardropError('WARDROP_RECORDING_INVALID', what, { cause });
}

/** Tells signals again what was recorded. */
export class SignalsReplay {
  #signals: Signals | undefined;
  #engines: ReadonlyMap<string, Engine> = new Map();
  #seen: FleetState | undefined;
  #planned: FleetState | undefined;

  /** @throws {WardropError} WARDROP_RECORDING_INVALID for a signal that lacks something */
  accept(signal: RecordedSignal): void {
    try {
      if (signal.kind === 'start')
        this.#begin(new Signals(signal.config, signal.held, signal.atMs), signal.config);
      else if (signal.kind === 'known') this.#goOn(signal);
      else if (this.#signals !== undefined) this.#tell(this.#signals, signal);
    } catch (error) {
      throw damaged(signal, error as Error);
    }
  }

  /**
   * Whether signals come to the state that was solved; undefined when the recording does not hold when that was looked
   * at, or not what they knew by then in a form of this version.
   */
  isSame(recorded: FleetState): boolean | undefined {
    return this.#planned && isDeepStrictEqual(this.#planned, recorded);
  }

  #goOn({ atMs, config, format, saved }: KnownSignals): void {
    // Of what another version has saved nothing follows; plans can be made again nevertheless.
    const signals = format === SAVED_FORMAT ? new Signals(config, [], atMs) : undefined;
    signals?.restore(saved);
    this.#begin(signals, config);
  }

  #begin(signals: Signals | undefined, config: SignalsConfig): void {
    this.#signals = signals;
    this.#engines = byId(config);
    this.#seen = undefined;
    this.#planned = undefined;
  }

  #tell(signals: Signals, signal: Exclude<RecordedSignal, { kind: 'start' | 'known' }>): void {
    const { atMs } = signal;
    switch (signal.kind) {
      case 'reconfigure':
        this.#engines = byId(signal.config);
        signals.reconfigure(signal.config, atMs);
        break;
      case 'resume':
        signals.resume(signal.operations, atMs);
        break;
      case 'hold-up':
        signals.noteHoldUp(atMs);
        break;
      case 'partial':
        signals.notePartial(signal.isPartial, atMs);
        break;
      case 'orders':
        signals.takeOrders(signal.orders, atMs);
        break;
      case 'report':
        signals.acceptReport(signal.frontendId, signal.nodeId, signal.report, atMs);
        break;
      case 'load-report':
        signals.acceptLoadReport(signal.frontendId, signal.nodeId, signal.report, atMs);
        break;
      case 'probe':
        signals.acceptProbe(signal.engineId, signal.address, signal.result, atMs);
        break;
      case 'page':
        signals.acceptPage(signal.engineId, signal.address, signal.generated, atMs);
        break;
      case 'load':
        signals.acceptLoad(
          this.#engines.get(signal.engineId)!,
          signal.requests,
          signal.replicas,
          atMs,
          signal.leastWaiting,
        );
        break;
      case 'act':
        signals.act(signal.request, atMs);
        break;
      case 'evaluate':
        this.#seen = signals.evaluate(atMs).state;
        break;
      case 'plan':
        this.#planned = this.#seen;
        break;
    }
  }
}

function byId({ fleet }: SignalsConfig): ReadonlyMap<string, Engine> {
  return new Map(fleet.engines.map((engine) => [engine.id, engine]));
}
