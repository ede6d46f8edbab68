import type { Logger } from 'pino';
import { byId } from '../../collections.js';

/** Something that an operator should look at; lasts until it is over. */
export interface Alarm {
  /** Such as `config` or `frontend-silent:west`; the part before the colon is one of a few kinds. */
  readonly id: string;
  readonly sinceMs: number;
  readonly message: string;
}

/** Present alarms. Beginning and end of each are logged. */
export class Alarms {
  readonly #alarms = new Map<string, Alarm>();
  readonly #now: () => number;
  readonly #log: Pick<Logger, 'warn' | 'info'>;

  constructor(now: () => number, log: Pick<Logger, 'warn' | 'info'>) {
    this.#now = now;
    this.#log = log;
  }

  /** Sorted by id. */
  get list(): readonly Alarm[] {
    return [...this.#alarms.values()].sort(byId);
  }

  raise(id: string, message: string): void {
    const before = this.#alarms.get(id);
    this.#alarms.set(id, { id, sinceMs: before?.sinceMs ?? this.#now(), message });
    if (before === undefined) this.#log.warn({ alarm: id }, message);
  }

  clear(id: string): void {
    if (this.#alarms.delete(id)) this.#log.info({ alarm: id }, 'the alarm is over');
  }

  /** Makes the alarms of a kind exactly these, by what follows the colon. */
  set(kind: string, messages: ReadonlyMap<string, string>): void {
    const prefix = `${kind}:`;
    for (const id of this.#alarms.keys()) {
      if (id.startsWith(prefix) && !messages.has(id.slice(prefix.length))) this.clear(id);
    }
    for (const [name, message] of messages) this.raise(`${kind}:${name}`, message);
  }
}
