import type { Peers } from '../../peers/peers.js';
import type { ServerState } from '../../plan/state-file/server-state.js';
import type { StateFile } from '../../plan/state-file/state-file.js';
import { encodeState } from '../../plan/state-file/state-format.js';
import type { Alarms } from '../alarms/alarms.js';

/** What is measured goes into the state file this often, also while the plan stays the same. */
const SAVE_INTERVAL_MS = 60_000;
/** Nobody else has written the state file for this long: the alarm is over. */
const REPLACED_ALARM_MS = 300_000;

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

  constructor(options: StateKeeperOptions) {
    this.#options = options;
  }

  isDue(): boolean {
    return this.#options.now() - this.#savedAtMs >= SAVE_INTERVAL_MS;
  }

  /** Never rejects. */
  async save(): Promise<void> {
    const { file, peers, alarms, state, now } = this.#options;
    this.#savedAtMs = now();
    try {
      if (!peers.isAlone) peers.board.setState(encodeState(state()));
      await file.save(state());
    } catch (error) {
      alarms.raise('state-file', (error as Error).message);
      return;
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
