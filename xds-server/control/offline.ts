import { readFile } from 'node:fs/promises';
import type { Config } from '../config/config.js';
import { WardropError } from '../errors.js';
import type { OptimizerInput } from '../optimizer/solution.js';
import type { Plan } from '../plan/plan.js';
import { decodeState } from '../plan/state-format.js';
import { type HeldRate, Signals } from '../signals/signals.js';
import { optimizerInput } from './planner.js';

/** Rates that a plan was made for. */
export function ratesOf(plan: Plan | null): readonly HeldRate[] {
  return (plan?.rows ?? []).map(({ frontendId, poolId, demandRps }) => ({
    frontendId,
    poolId,
    requestsPerSecond: demandRps,
  }));
}

/**
 * What a control server would solve first: the configuration, the saved plan if there is one, everything ready.
 *
 * @throws {WardropError} WARDROP_STATE_INVALID
 */
export async function offlineInput(config: Config): Promise<OptimizerInput> {
  const previous = await savedPlan(config.server.stateFile);
  const nowMs = Date.now();
  const { state } = new Signals(config, ratesOf(previous), nowMs).evaluate(nowMs);
  const { profiles, policy } = config;
  return optimizerInput({ previous, state, profiles, policy, nowMs: () => nowMs });
}

async function savedPlan(file: string): Promise<Plan | null> {
  try {
    return decodeState(await readFile(file, 'utf8')).plan;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new WardropError('WARDROP_STATE_INVALID', `state file ${file}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
