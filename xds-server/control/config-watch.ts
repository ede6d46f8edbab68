import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

const POLL_MS = 1_000;

/**
 * Notices when any of some files changes, by reading them every second: small files, and the only way that sees
 * every kind of replacement (in place, by rename, through links, on network file systems).
 */
export class ConfigWatch {
  #onChange: () => Promise<void> = async () => {};
  #files: readonly string[];
  #seen: string | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;
  #checking: Promise<void> = Promise.resolve();

  constructor(files: readonly string[]) {
    this.#files = files;
  }

  /** Takes the present content as known: what changes from now on is noticed, also before the start. */
  async note(): Promise<void> {
    this.#seen = await digest(this.#files);
  }

  start(onChange: () => Promise<void>): void {
    this.#onChange = onChange;
    this.#schedule();
  }

  /** Replaces the files. Others than before count as a change, as nobody knows what they held when they were read. */
  setFiles(files: readonly string[]): void {
    if (files.join('\n') !== this.#files.join('\n')) this.#seen = undefined;
    this.#files = files;
  }

  /** Waits for a change that is being handled. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#checking;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#checking = this.#check();
    }, POLL_MS);
  }

  async #check(): Promise<void> {
    const now = await digest(this.#files);
    if (now !== this.#seen) {
      this.#seen = now;
      await this.#onChange();
    }
    this.#schedule();
  }
}

/** Of all contents; a file that cannot be read counts as such. */
async function digest(files: readonly string[]): Promise<string> {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = await readFile(file).catch(() => undefined);
    hash.update(content === undefined ? 'unreadable' : `${content.length} `);
    if (content !== undefined) hash.update(content);
  }
  return hash.digest('hex');
}
