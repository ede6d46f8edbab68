import { randomBytes } from 'node:crypto';
import {
  access,
  constants,
  copyFile,
  open,
  readdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { WardropError } from '../../errors.js';
import { now } from '../../steady-clock.js';
import type { ServerState } from './server-state.js';
import { statePieces } from './state-format.js';
import { readState } from './state-salvage.js';

export interface LoadedState {
  /** Null when there is none to go on with. */
  readonly state: ServerState | null;
  /** Why a file that is there could not be used, or only in part (WARDROP_STATE_INVALID), and what was done with it. */
  readonly problem: WardropError | null;
}

/** The state file: one JSON document, replaced as a whole. */
export class StateFile {
  readonly path: string;
  /** The file as this server left it; undefined before its first write. */
  #written: FileIdentity | undefined;
  #next: ServerState | undefined;
  #last: Promise<void> = Promise.resolve();

  /** When this server last found that somebody else had written the file; undefined when never. */
  foundReplacedAtMs: number | undefined;

  constructor(path: string) {
    this.path = path;
  }

  /**
   * Reads the file. One that is not as this version writes it never stops a server: it is kept under another name, so that
   * it can be looked at or be used by the version that wrote it.
   */
  async load(): Promise<LoadedState> {
    let text: string;
    try {
      text = await readFile(this.path, 'utf8');
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT') return { state: null, problem: null };
      // A folder is nothing that a state was ever in.
      const aside = code === 'EISDIR' ? 'Name a file.' : await this.#setAside(rename);
      const what = `cannot be read: ${reason(error)}. ${aside} The server starts without it: conversations may move`;
      return { state: null, problem: this.#problem(what, error) };
    }
    try {
      const { state, problem } = readState(text);
      if (problem === null) return { state, problem };
      const aside = await this.#setAside(keepCopy);
      return { state, problem: this.#problem(`is not as this version writes it: ${problem}. ${aside}`) };
    } catch (error) {
      const aside = await this.#setAside(rename);
      const what = `is broken: ${reason(error)}. ${aside} The server starts without it: conversations may move`;
      return { state: null, problem: this.#problem(what, error) };
    }
  }

  /**
   * Replaces the file, by a new one that is complete on disk before it takes the name. While a write is under way
   * later states wait, and of these only the last is written; the promise resolves when it, or a later one, is safe.
   *
   * Rejects with WARDROP_STATE_INVALID when the file cannot be written; the old one is then as it was.
   */
  save(state: ServerState): Promise<void> {
    this.#next = state;
    const saved = this.#last.then(() => this.#writeNext());
    this.#last = saved.catch(() => undefined);
    return saved;
  }

  async #writeNext(): Promise<void> {
    const state = this.#next;
    if (state === undefined) return;
    this.#next = undefined;
    try {
      const found = await identityOf(this.path);
      if (found !== undefined && this.#written !== undefined && !isDeepStrictEqual(found, this.#written)) {
        this.foundReplacedAtMs = now();
      }
      const path = await targetOf(this.path);
      if (this.#written === undefined) await removeUnfinished(path);
      await replaceFile(path, statePieces(state));
      this.#written = await identityOf(this.path);
    } catch (error) {
      this.#next ??= state;
      const what = `cannot be written: ${reason(error)}. Check that its folder exists, may be written to and has room; server.stateFile names another`;
      throw this.#problem(what, error);
    }
  }

  /** Puts the file, or a copy of it, under the first free `.broken` name. */
  async #setAside(put: (from: string, to: string) => Promise<void>): Promise<string> {
    try {
      const path = await targetOf(this.path);
      for (let number = 1; ; number++) {
        const aside = number === 1 ? `${path}.broken` : `${path}.broken-${number}`;
        if (await exists(aside)) continue;
        await put(path, aside);
        return `It is kept as ${aside}.`;
      }
    } catch (error) {
      return `It could not be put aside (${reason(error)}) and will be replaced by the next plan.`;
    }
  }

  #problem(what: string, cause?: unknown): WardropError {
    return new WardropError('WARDROP_STATE_INVALID', `state file ${this.path} ${what}`, { cause });
  }
}

interface FileIdentity {
  readonly inode: bigint;
  readonly modifiedNs: bigint;
}

/** Undefined when there is no such file. */
async function identityOf(path: string): Promise<FileIdentity | undefined> {
  try {
    const { ino, mtimeNs } = await stat(path, { bigint: true });
    return { inode: ino, modifiedNs: mtimeNs };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** What a link points to, whether that is there or not: it is that which is to be kept, and not the link. */
async function targetOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch {
    return readlink(path).then(
      (target) => resolve(dirname(path), target),
      () => path,
    );
  }
}

async function replaceFile(path: string, pieces: Iterable<string>): Promise<void> {
  // Nobody else writes to it, not even a server in another container that has the same process id.
  const temporary = `${path}.${randomBytes(4).toString('hex')}.tmp`;
  // Readable by the owner only: whoever knows the salt can aim keys at an engine.
  const file = await open(temporary, 'w', 0o600);
  try {
    await writeFile(file, pieces);
    await file.sync();
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  } finally {
    await file.close();
  }
  const directory = await open(dirname(path), 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

/** Removes what servers left that were killed while they wrote; who still writes tries again. */
async function removeUnfinished(path: string): Promise<void> {
  const start = `${basename(path)}.`;
  const isUnfinished = (name: string) =>
    name.startsWith(start) && /^[0-9a-f]+\.tmp$/.test(name.slice(start.length));
  const unfinished = (await readdir(dirname(path))).filter(isUnfinished);
  await Promise.all(unfinished.map((name) => rm(join(dirname(path), name), { force: true })));
}

/** The file itself stays until the next one replaces it: what was read of it is nowhere else. */
function keepCopy(from: string, to: string): Promise<void> {
  return copyFile(from, to, constants.COPYFILE_EXCL);
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
