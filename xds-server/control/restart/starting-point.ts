import type { WardropError } from '../../errors.js';
import { Peers } from '../../peers/peers.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import { StateFile } from '../../plan/state-file/state-file.js';
import { readState } from '../../plan/state-file/state-salvage.js';
import type { Lookup } from '../../signals/discovery/lookup.js';
import { now } from '../../steady-clock.js';
import { LiveConfig } from '../live-config/live-config.js';
import { type LeftSignals, SignalsFile } from './signals-file.js';

/** What a control server starts with. */
export interface StartingPoint {
  readonly live: LiveConfig;
  readonly stateFile: StateFile;
  readonly peers: Peers;
  /** Null when there is nothing to go on with. */
  readonly state: ServerState | null;
  /** What is wrong with the state file. */
  readonly problem: WardropError | null;
  /** What the control server before it had measured. */
  readonly left: LeftSignals | undefined;
}

/**
 * Reads the configuration, looks for replicas, and takes what there is to go on with: what a peer knows that runs, else what
 * the state file says.
 *
 * @throws {ConfigError} for a configuration with problems
 */
export async function startingPoint(configFile: string, lookup: Lookup | undefined): Promise<StartingPoint> {
  const live = LiveConfig.read(configFile, lookup);
  const { server } = live.current;
  const stateFile = new StateFile(server.stateFile);
  const peers = new Peers({ server, now });
  const { state: saved, problem } = await stateFile.load();
  const joined = await peers.join();
  const state = joined === undefined ? saved : (joinedState(joined, saved) ?? saved);
  await live.discover(new Map(state?.discovered));
  const left = await new SignalsFile(server.stateFile).take(live.current, now());
  return { live, stateFile, peers, state, problem, left };
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
