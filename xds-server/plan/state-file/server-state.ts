import type { Address } from '../../fleet/fleet.js';
import type { Operations } from '../../fleet/operations.js';
import type { Plan } from '../plan.js';

/** All that a control server must remember to go on where it stopped. */
export interface ServerState {
  /** Last published plan with its partitions and what they remember; null before the first. */
  readonly plan: Plan | null;
  /** At least the version of every snapshot issued so far; a restarted server counts on from here. */
  readonly snapshotVersion: number;
  /** Mixed into key hashes; another salt would move every conversation. */
  readonly salt: string;
  /** What operators ordered, and penalties; absent in files of before there were any. */
  readonly operations?: Operations;
  /** Replicas that were found, by engine id; absent in files of before they could be. */
  readonly discovered?: readonly (readonly [string, readonly Address[]])[];
}
