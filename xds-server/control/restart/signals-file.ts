import { createHash } from 'node:crypto';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { REPORT_FORMAT } from '../../../wire/layout.js';
import { WardropError } from '../../errors.js';
import { exactJson, parseExactJson } from '../../exact-json.js';
import { messageOf } from '../../message-of.js';
import type { SignalsConfig } from '../../signals/known-config.js';
import { SAVED_FORMAT, type SavedSignals } from '../../signals/signals.js';

/** What signals knew when a control server stopped. */
export interface LeftSignals {
  readonly atMs: number;
  readonly saved: SavedSignals;
}

/** After more than this, what comes is measured better without what was. */
const LONGEST_PAUSE_MS = 60_000;

/**
 * Beside the state file, written by a control server that stops: all that it has measured, for the one that is started in its
 * place. Many times as large as what the state file has of it, so that one that dies leaves none.
 */
export class SignalsFile {
  readonly #path: string;

  constructor(stateFile: string) {
    this.#path = `${stateFile}.signals`;
  }

  /** Takes the file away; undefined when there is none that fits: whole, recent, and for the same version and configuration. */
  async take(config: SignalsConfig, nowMs: number): Promise<LeftSignals | undefined> {
    try {
      const text = await readFile(this.#path, 'utf8');
      await rm(this.#path);
      const [head = '', rest = ''] = text.split('\n');
      const { atMs } = JSON.parse(head) as Head;
      const isRecent = atMs <= nowMs && nowMs - atMs < LONGEST_PAUSE_MS;
      if (!isRecent || head !== headOf(config, atMs, rest)) return undefined;
      return { atMs, saved: parseExactJson(rest) as SavedSignals };
    } catch {
      return undefined;
    }
  }

  /** Rejects with WARDROP_STATE_INVALID when the file cannot be written; nothing is left of it then. */
  async leave(config: SignalsConfig, { atMs, saved }: LeftSignals): Promise<void> {
    const rest = exactJson(saved);
    try {
      await writeFile(this.#path, `${headOf(config, atMs, rest)}\n${rest}`, { mode: 0o600 });
    } catch (error) {
      await rm(this.#path, { force: true }).catch(() => undefined);
      const what = `${this.#path} cannot be written: ${messageOf(error)}. The next start measures anew`;
      throw new WardropError('WARDROP_STATE_INVALID', what, { cause: error });
    }
  }
}

interface Head {
  readonly format: number;
  /** Format of the usage reports, which are kept as they came. */
  readonly reportFormat: number;
  readonly atMs: number;
  readonly config: string;
  readonly rest: string;
}

function headOf(config: SignalsConfig, atMs: number, rest: string): string {
  const { fleet, profiles, expectedDemand, outlierPenalty, steering, steered } = config;
  const known = { fleet, profiles: [...profiles], expectedDemand, outlierPenalty, steering, steered };
  const formats = { format: SAVED_FORMAT, reportFormat: REPORT_FORMAT };
  const head: Head = { ...formats, atMs, config: digest(exactJson(known)), rest: digest(rest) };
  return JSON.stringify(head);
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
