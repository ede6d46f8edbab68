import type { Logger } from 'pino';
import { messageOf } from '../../message-of.js';
import type { Alarms } from './alarms.js';

/** An alarm stays until its part has gone without a fault for this long; so often, too, the log tells where it is. */
const QUIET_MS = 60_000;

/**
 * Exceptions that nobody expects: faults of the control server itself. The part that threw is tried again when its turn comes,
 * the others go on, and an alarm tells: without them Envoys would hear nothing more, and a restart may meet the same again.
 */
export class Faults {
  readonly #alarms: Alarms;
  readonly #log: Pick<Logger, 'error'>;
  readonly #now: () => number;
  /** By part, when it failed last, and was last logged. */
  readonly #failed = new Map<string, { atMs: number; loggedAtMs: number }>();

  constructor(alarms: Alarms, log: Pick<Logger, 'error'>, now: () => number) {
    this.#alarms = alarms;
    this.#log = log;
    this.#now = now;
  }

  /** Runs what belongs to this part; it never throws. */
  attempt(part: string, run: () => void): void {
    try {
      run();
    } catch (error) {
      this.note(part, error);
    }
  }

  note(part: string, error: unknown): void {
    const atMs = this.#now();
    const before = this.#failed.get(part)?.loggedAtMs ?? Number.NEGATIVE_INFINITY;
    const isLogged = atMs - before >= QUIET_MS;
    this.#failed.set(part, { atMs, loggedAtMs: isLogged ? atMs : before });
    if (isLogged) this.#log.error({ part, err: error }, 'a fault of the control server itself');
    this.#alarms.raise(
      `fault:${part}`,
      `a fault of the control server itself in its ${part}: ${messageOf(error)}; all else goes on. ` +
        'Please report it with the log, which says where it is; a restart may help',
    );
  }

  /** Ends the alarms of parts that have not failed for a while. */
  look(): void {
    for (const [part, { atMs }] of this.#failed) {
      if (this.#now() - atMs < QUIET_MS) continue;
      this.#failed.delete(part);
      this.#alarms.clear(`fault:${part}`);
    }
  }
}
