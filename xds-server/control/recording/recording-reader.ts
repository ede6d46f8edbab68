import { WardropError } from '../../errors.js';
import { parseExactJson } from '../../exact-json.js';
import { addPart, type PartLine } from './known-lines.js';
import type { RecordedSignal } from './recorded-signals.js';
import type { Recorded, RecordedSolve } from './recording.js';
import {
  FIRST_WITH_NUMBERS,
  FORMATS,
  PARTS,
  type Parts,
  SIGNAL_KINDS,
  type SignalLine,
  type SolveLine,
  signalOf,
} from './recording-lines.js';
import { misshapen } from './solve-shape.js';

/** Reads a recording, line by line. */
export class RecordingReader {
  #last: Partial<Parts> = {};
  #lines = 0;
  #hasNumbers = false;
  /** Of what was known, until the rest of it is read. */
  #parts: PartLine[] = [];

  /**
   * What a line holds; undefined for the first one, and for a part of something.
   *
   * @throws {WardropError} WARDROP_RECORDING_INVALID
   */
  read(line: string): Recorded | undefined {
    this.#lines++;
    let value: unknown;
    try {
      value = parseExactJson(line);
    } catch (error) {
      throw this.#invalid(`is no JSON: ${(error as Error).message}`);
    }
    if (this.#lines === 1) {
      const format = (value as { wardropRecording?: unknown } | null)?.wardropRecording;
      if (format === undefined) throw this.#invalid('does not name its format, {"wardropRecording":…}');
      if (!FORMATS.includes(format))
        throw this.#invalid(
          `says format ${format}, which a newer version of Wardrop reads; this one reads ${FORMATS.join(', ')}`,
        );
      this.#hasNumbers = Number(format) >= FIRST_WITH_NUMBERS;
      return undefined;
    }
    if (typeof value === 'object' && value !== null && 'wardropRecording' in value)
      throw this.#invalid('begins another recording; replay each by itself');
    if (this.#hasNumbers) this.#checkNumber(value);
    const kind = (value as { kind?: unknown } | null)?.kind;
    if (kind === 'solve') return this.#solve(value as SolveLine);
    if (kind === 'part') {
      this.#parts.push(value as PartLine);
      return undefined;
    }
    if (typeof kind === 'string' && Object.hasOwn(SIGNAL_KINDS, kind))
      return this.#signal(value as SignalLine);
    throw this.#invalid('holds neither a solve nor a signal');
  }

  /** Lines that are missing, there twice or in another order are found by this. */
  #checkNumber(value: unknown): void {
    const { line } = (value ?? {}) as { line?: unknown };
    if (line === this.#lines) return;
    if (typeof line !== 'number' || line < this.#lines) throw this.#invalid('was not written there');
    const gap = line - this.#lines;
    throw this.#invalid(
      `was line ${line} when it was written: ${gap} ${gap === 1 ? 'line is' : 'lines are'} missing before it`,
    );
  }

  #solve(line: SolveLine): RecordedSolve {
    const parts = { ...this.#last };
    for (const part of PARTS) if (part in line) Object.assign(parts, { [part]: line[part] });
    const { fleet, engines, demands, profiles, policy, previous = null } = parts;
    if (!fleet || !engines || !demands || !profiles || !policy)
      throw this.#invalid('lacks what came before it');
    const { atMs, settledSeconds, settledSecondsByPool, times, failure } = line;
    const wrong = misshapen({ ...parts, atMs });
    if (wrong !== undefined)
      throw this.#invalid(`is damaged: its ${wrong} has another form than any that is written`);
    const plan = line.plan === undefined ? previous : line.plan;
    this.#last = { fleet, engines, demands, profiles, policy, previous: plan };
    return {
      kind: 'solve',
      times,
      plan,
      ...(typeof failure === 'string' && { failure }),
      input: {
        previous,
        state: {
          fleet,
          atMs,
          engines,
          demands,
          settledSeconds,
          ...(settledSecondsByPool && { settledSecondsByPool }),
        },
        profiles: new Map(profiles as [string, never][]),
        policy,
      },
    };
  }

  #signal(line: SignalLine): RecordedSignal {
    try {
      const signal = signalOf(line);
      if (signal.kind === 'known') for (const part of this.#parts.splice(0)) addPart(signal.saved, part);
      return signal;
    } catch (error) {
      const { message } = error as Error;
      throw this.#invalid(`is damaged, or of another version of Wardrop, which can replay it: ${message}`);
    }
  }

  #invalid(what: string): WardropError {
    return new WardropError('WARDROP_RECORDING_INVALID', `line ${this.#lines} of the recording ${what}`);
  }
}
