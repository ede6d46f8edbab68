import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { SnapshotView } from '../../../wire/snapshot-view.js';
import type { Config } from '../../config/config.js';
import { WardropError } from '../../errors.js';
import type { OptimizerInput } from '../../optimizer/solution.js';
import { plainRowsText } from '../../plan/fallback.js';
import { makePlan, optimizerInput, type PlanInput, type PlanSolver } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import { buildSnapshotView } from '../../plan/snapshot-view.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import { readState } from '../../plan/state-file/state-salvage.js';
import { whyUnfit } from '../../plan/why-unfit.js';
import { Signals } from '../../signals/signals.js';
import { withDiscovered } from '../live-config/discovered-fleet.js';
import { ratesOf } from '../restart/starting-signals.js';

/**
 * What a control server would solve first: the configuration, the saved plan if there is one, everything ready.
 *
 * @throws {WardropError} WARDROP_STATE_INVALID
 */
export async function offlineInput(config: Config): Promise<OptimizerInput> {
  return optimizerInput((await startOf(config)).input);
}

/**
 * The snapshot that a control server would begin with: of the saved plan, else, without one or where it does not fit
 * the configuration, of a plan made here; everything ready.
 *
 * @throws {WardropError} WARDROP_STATE_INVALID, or what failed to plan
 */
export async function offlineSnapshot(
  config: Config,
  frontendId: string,
  solver: PlanSolver,
): Promise<SnapshotView> {
  const { saved, input, nowMs } = await startOf(config);
  const { previous, state } = input;
  const fits = previous !== null && whyUnfit(previous, state) === undefined;
  const plan = fits ? previous : await planned(solver, input, nowMs);
  const { fleet, engines } = state;
  // All Envoys of a fleet must have the same, also before a control server has ever run.
  const salt = saved?.salt ?? createHash('sha256').update(JSON.stringify(fleet)).digest('hex').slice(0, 32);
  return buildSnapshotView({
    plan,
    fleet,
    engines,
    frontendId,
    salt,
    steered: config.steered,
    version: 1,
    issuedAtMs: plan.createdAtMs,
  });
}

interface Start {
  readonly saved: ServerState | null;
  readonly input: PlanInput;
  readonly nowMs: number;
}

/** What the first plan would be made of, with the replicas that were found before. */
async function startOf(written: Config): Promise<Start> {
  const saved = await savedState(written.server.stateFile);
  const found = (saved?.discovered ?? []).map(
    ([id, addresses]) => [id, { addresses, problem: null }] as const,
  );
  const { config } = withDiscovered(written, new Map(found));
  const nowMs = Date.now();
  const { state } = new Signals(config, ratesOf(saved), nowMs).evaluate(nowMs);
  const { profiles, policy } = config;
  return { saved, input: { previous: saved?.plan ?? null, state, profiles, policy }, nowMs };
}

async function planned(solver: PlanSolver, input: PlanInput, nowMs: number): Promise<Plan> {
  const { plan, failure } = await makePlan(solver, input, () => nowMs);
  if (plan === null || (failure !== undefined && plainRowsText(plan) !== undefined)) throw failure!;
  return plan;
}

async function savedState(file: string): Promise<ServerState | null> {
  try {
    return readState(await readFile(file, 'utf8')).state;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    const problem = `state file ${file}: ${(error as Error).message}; move it away to go on without it`;
    throw new WardropError('WARDROP_STATE_INVALID', problem, { cause: error });
  }
}
