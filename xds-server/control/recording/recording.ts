import { isDeepStrictEqual } from 'node:util';
import { decodeUsageReport } from '../../../wire/usage-report-reader.js';
import { encodeUsageReport } from '../../../wire/usage-report-writer.js';
import { WardropError } from '../../errors.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import type { PlanInput } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import type { Profile } from '../../profiles/profile.js';
import { exactJson, parseExactJson } from '../../signals/exact-json.js';
import type { SignalsConfig } from '../../signals/known-config.js';
import { addPart, type PartLine, partLines, withoutLists } from './known-lines.js';
import type { RecordedSignal } from './recorded-signals.js';
import { misshapen } from './solve-shape.js';

/** One solve: all that went in, and the plan that should be in force after it. */
export interface RecordedSolve {
  readonly kind: 'solve';
  readonly input: Omit<PlanInput, 'nowMs'>;
  /** What the clock said whenever planning asked. */
  readonly times: readonly number[];
  readonly plan: Plan | null;
}

export type Recorded = RecordedSolve | RecordedSignal;

/**
 * A recording is lines of JSON. The parts of a solve that are as in the one before are left out, so that a long one is
 * mostly demand and weights. The first line names the format, all others say which line they are: what follows on
 * something that is missing would be taken for something else.
 */
const FORMAT = 3;
/**
 * The first one did not say what signals knew when a recording began later than the control server; lines had no numbers
 * before the third one.
 */
const FORMATS: readonly unknown[] = [1, 2, FORMAT];
const FIRST_WITH_NUMBERS = 3;

/** The parts of a solve, each of which may stay the same from one to the next. */
interface Parts {
  readonly fleet: FleetState['fleet'];
  readonly engines: FleetState['engines'];
  readonly demands: FleetState['demands'];
  readonly profiles: readonly (readonly [string, unknown])[];
  readonly policy: PlanInput['policy'];
  readonly previous: Plan | null;
}

const PARTS = ['fleet', 'engines', 'demands', 'profiles', 'policy', 'previous'] as const;

interface SolveLine extends Partial<Parts> {
  readonly kind: 'solve';
  readonly atMs: number;
  readonly settledSeconds: number;
  /** Absent from recordings of versions for which all pools were one. */
  readonly settledSecondsByPool?: FleetState['settledSecondsByPool'];
  readonly times: readonly number[];
  /** Left out when it is the previous one. */
  readonly plan?: Plan | null;
}

/** Writes a recording, line by line. */
export class RecordingWriter {
  #last: Partial<Parts> = {};
  #lines = 0;

  /** Lines with their ends, each made when it is asked for. Those of the last one must be taken before. */
  *lines(recorded: Recorded): Generator<string> {
    if (this.#lines === 0) {
      this.#lines++;
      yield `${JSON.stringify({ wardropRecording: FORMAT })}\n`;
    }
    if (recorded.kind === 'known') for (const line of partLines(recorded.saved)) yield this.#numbered(line);
    const line = recorded.kind === 'solve' ? this.#solve(recorded) : signalLine(recorded);
    yield this.#numbered(exactJson(line));
  }

  #numbered(object: string): string {
    this.#lines++;
    return `{"line":${this.#lines},${object.slice(1)}\n`;
  }

  #solve({ input, times, plan }: RecordedSolve): SolveLine {
    const { state, previous, profiles, policy } = input;
    const { fleet, engines, demands, atMs, settledSeconds, settledSecondsByPool } = state;
    const parts: Parts = { fleet, engines, demands, profiles: [...profiles], policy, previous };
    const changed = PARTS.filter((part) => !isDeepStrictEqual(parts[part], this.#last[part]));
    // What is in force after this solve is what the next one starts from.
    this.#last = { ...parts, previous: plan };
    return {
      kind: 'solve',
      atMs,
      settledSeconds,
      ...(settledSecondsByPool && { settledSecondsByPool }),
      times,
      ...Object.fromEntries(changed.map((part) => [part, parts[part]])),
      ...(isDeepStrictEqual(plan, previous) ? {} : { plan }),
    };
  }
}

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
    const { atMs, settledSeconds, settledSecondsByPool, times } = line;
    const wrong = misshapen({ ...parts, atMs });
    if (wrong !== undefined)
      throw this.#invalid(`is damaged: its ${wrong} has another form than any that is written`);
    const plan = line.plan === undefined ? previous : line.plan;
    this.#last = { fleet, engines, demands, profiles, policy, previous: plan };
    return {
      kind: 'solve',
      times,
      plan,
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

const SIGNAL_KINDS: Readonly<Record<RecordedSignal['kind'], true>> = {
  start: true,
  known: true,
  reconfigure: true,
  resume: true,
  'hold-up': true,
  partial: true,
  orders: true,
  report: true,
  'load-report': true,
  probe: true,
  page: true,
  load: true,
  act: true,
  evaluate: true,
  plan: true,
};

/** As signals are, but for what JSON cannot say. */
type SignalLine = Omit<RecordedSignal, 'report' | 'config'> & {
  /** A report's bytes in base64. */
  readonly bytes?: string;
  readonly line?: number;
  readonly config?: Omit<SignalsConfig, 'profiles'> & { readonly profiles: readonly [string, Profile][] };
};

function signalLine(signal: RecordedSignal): SignalLine {
  if ('report' in signal) {
    const { report, ...rest } = signal;
    return { ...rest, bytes: Buffer.from(encodeUsageReport(report)).toString('base64') };
  }
  if (!('config' in signal)) return signal;
  // The rest of a configuration, such as tokens, is nobody's business.
  const { fleet, profiles, expectedDemand, outlierPenalty, steering, steered } = signal.config;
  return {
    ...signal,
    ...(signal.kind === 'known' && { saved: withoutLists(signal.saved) }),
    config: { fleet, profiles: [...profiles], expectedDemand, outlierPenalty, steering, steered },
  };
}

function signalOf({ bytes, config, line: _, ...rest }: SignalLine): RecordedSignal {
  return {
    ...rest,
    ...(bytes !== undefined && { report: decodeUsageReport(Buffer.from(bytes, 'base64')) }),
    ...(config !== undefined && { config: { ...config, profiles: new Map(config.profiles) } }),
  } as RecordedSignal;
}
