import type { Peers } from '../../peers/peers.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import type { StateFile } from '../../plan/state-file/state-file.js';
import { encodeState } from '../../plan/state-file/state-format.js';
import type { Alarms } from '../alarms/alarms.js';

/** What is measured goes into the state file this often, also while the plan stays the same. */
const SAVE_INTERVAL_MS = 60_000;
/** Nobody else has written the state file for this long: the alarm is over. */
const REPLACED_ALARM_MS = 300_000;
/** A write takes milliseconds; the disk of one that takes this long does not answer. */
const LONGEST_WRITE_MS = 30_000;

export interface StateKeeperOptions {
  readonly file: StateFile;
  readonly peers: Pick<Peers, 'board' | 'isAlone'>;
  readonly alarms: Alarms;
  /** What a restart should go on with. */
  readonly state: () => ServerState;
  readonly now: () => number;
}

/** Keeps the state file, and what peers have of it, as new as they should be; an alarm tells when the file cannot be written. */
export class StateKeeper {
  readonly #options: StateKeeperOptions;
  #savedAtMs = 0;
  /** Since when something is written without an end, and how many writes wait for it, itself included. */
  #writingSinceMs = 0;
  #writes = 0;

  constructor(options: StateKeeperOptions) {
    this.#options = options;
  }

  /** Saves when it is time to, and tells of a write that does not end. */
  look(): void {
    const { file, alarms, now } = this.#options;
    if (this.#writes === 0) {
      if (now() - this.#savedAtMs >= SAVE_INTERVAL_MS) void this.save();
    } else if (now() - this.#writingSinceMs >= LONGEST_WRITE_MS) {
      alarms.raise(
        'state-file',
        `state file ${file.path} cannot be written: its disk does not answer. A restart would go on with an older one`,
      );
    }
  }

  /** Never rejects. */
  async save(): Promise<void> {
    const { file, peers, alarms, state, now } = this.#options;
    this.#savedAtMs = now();
    if (this.#writes++ === 0) this.#writingSinceMs = now();
    try {
      if (!peers.isAlone) peers.board.setState(encodeState(state()));
      await file.save(state());
    } catch (error) {
      alarms.raise('state-file', (error as Error).message);
      return;
    } finally {
      this.#writes--;
      this.#writingSinceMs = now();
    }
    const replacedAtMs = file.foundReplacedAtMs;
    if (replacedAtMs === undefined || now() - replacedAtMs > REPLACED_ALARM_MS) {
      alarms.clear('state-file');
      return;
    }
    alarms.raise(
      'state-file',
      `something else writes state file ${file.path}, too: run one control server, or give each a file of its own`,
    );
  }
}
