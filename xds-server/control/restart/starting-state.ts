import type { WardropError } from '../../errors.js';
import type { Peers } from '../../peers/peers.js';
import type { PlanStore } from '../../plan/state-file/plan-store.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import { readState } from '../../plan/state-file/state-salvage.js';

export interface StartingState {
  /** Null when there is nothing to go on with. */
  readonly state: ServerState | null;
  /** What is wrong with the state file. */
  readonly problem: WardropError | null;
}

/** What a start goes on with: what a peer knows that runs, else what the state file says. */
export async function startingState(store: PlanStore, peers: Peers): Promise<StartingState> {
  const { state, problem } = await store.load();
  const joined = await peers.join();
  return { state: joined === undefined ? state : (joinedState(joined, state) ?? state), problem };
}

/** What a peer knows, with a snapshot version that is not below our own; undefined where it cannot be read. */
function joinedState(joined: string, saved: ServerState | null): ServerState | undefined {
  try {
    const { state } = readState(joined);
    return { ...state, snapshotVersion: Math.max(state.snapshotVersion, saved?.snapshotVersion ?? 0) };
  } catch {
    return undefined;
  }
}
