import type { Config } from '../../config/config.js';
import type { ClassRate } from '../../fleet/operations.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import { type RecordedSignal, RecordedSignals } from '../recording/recorded-signals.js';
import type { StartingPoint } from './starting-point.js';

/** Signals that know what is left of before the start. */
export function startingSignals(
  config: Config,
  { state, left }: Pick<StartingPoint, 'state' | 'left'>,
  nowMs: number,
  record: (signal: RecordedSignal) => void,
): RecordedSignals {
  const signals = new RecordedSignals(config, ratesOf(state), nowMs, record);
  const operations = state?.operations;
  if (left !== undefined) {
    signals.goOn(left.saved, nowMs);
    // Those of a peer may be newer.
    if (operations !== undefined) signals.takeOrders(operations, nowMs);
  } else if (operations !== undefined) signals.resume(operations, nowMs);
  return signals;
}

/** Rates that the plan was made for: of classes where they are known, else of its rows. */
export function ratesOf(state: Pick<ServerState, 'plan' | 'operations'> | null): readonly ClassRate[] {
  const { plan = null, operations } = state ?? {};
  if (operations?.rates?.length) return operations.rates;
  return (plan?.rows ?? []).map(({ frontendId, poolId, demandRps }) => ({
    frontendId,
    poolId,
    requestsPerSecond: demandRps,
  }));
}
