import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { type ReadFile, textOf } from '../../config/document/read-file.js';

const POLL_MS = 1_000;
/** What has changed is looked at again after this time, until nobody writes any more: half of a file may be valid. */
const SETTLE_MS = 100;
/** Stands for the content of a file that cannot be read. */
const UNREADABLE = '';

/**
 * Notices when any of some files holds something else than what was read of it last, by reading them every second: small
 * files, and the only way that sees every kind of replacement (in place, by rename, through links, on network file
 * systems), and that a file which was read while it changed is again as it was before. A change is told when it was seen twice.
 */
export class ConfigWatch {
  #onChange: () => Promise<void> = async () => {};
  /** What the files of the last load held when they were read, by their absolute paths. */
  #read = new Map<string, string>();
  /** What the files held when they were looked at last, if that was something else. */
  #seen: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #checking: Promise<void> = Promise.resolve();

  /** Reads the files of one load, good or not, which are watched from then on in the place of those before. */
  reading(): ReadFile {
    const read = new Map<string, string>();
    this.#read = read;
    return (file) => {
      const path = resolve(file);
      read.set(path, UNREADABLE);
      const bytes = readFileSync(path);
      read.set(path, fingerprint(bytes));
      return textOf(bytes);
    };
  }

  start(onChange: () => Promise<void>): void {
    this.#onChange = onChange;
    this.#schedule();
  }

  /** Waits for a change that is being handled. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#checking;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(
      () => {
        this.#checking = this.#check();
      },
      this.#seen === undefined ? POLL_MS : SETTLE_MS,
    );
  }

  async #check(): Promise<void> {
    const before = this.#seen;
    this.#seen = await this.#look();
    if (this.#seen !== undefined && this.#seen === before) {
      this.#seen = undefined;
      await this.#onChange();
    }
    this.#schedule();
  }

  /** What the files hold; undefined when it is what was read. */
  async #look(): Promise<string | undefined> {
    const read = this.#read;
    const held: string[] = [];
    for (const file of read.keys()) held.push(await readFile(file).then(fingerprint, () => UNREADABLE));
    const isAsRead = [...read.values()].every((before, index) => before === held[index]);
    return isAsRead ? undefined : held.join();
  }
}

function fingerprint(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
