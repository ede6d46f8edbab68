import { isDeepStrictEqual } from 'node:util';
import type { UsageReport } from '../../wire/usage-report.js';
import { decodeUsageReport } from '../../wire/usage-report-reader.js';
import { encodeUsageReport } from '../../wire/usage-report-writer.js';
import { WardropError } from '../errors.js';
import type { FleetState } from '../fleet/fleet-state.js';
import type { Plan } from '../plan/plan.js';
import type { PlanInput } from './planner.js';

/** One solve: all that went in, and the plan that should be in force after it. */
export interface RecordedSolve {
  readonly kind: 'solve';
  readonly input: Omit<PlanInput, 'nowMs'>;
  /** What the clock said whenever planning asked. */
  readonly times: readonly number[];
  readonly plan: Plan | null;
}

/** One usage report as it came in, or what the load reports of an Envoy without the filter add up to. */
export interface RecordedReport {
  readonly kind: 'report' | 'load-report';
  readonly atMs: number;
  readonly frontendId: string;
  readonly nodeId: string;
  readonly report: UsageReport;
}

export type Recorded = RecordedSolve | RecordedReport;

/**
 * A recording is lines of JSON. The parts of a solve that are as in the one before are left out, so that a long one is
 * mostly demand and weights. The first line names the format.
 */
const FORMAT = { wardropRecording: 1 };

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
  readonly times: readonly number[];
  /** Left out when it is the previous one. */
  readonly plan?: Plan | null;
}

/** Writes a recording, line by line. */
export class RecordingWriter {
  #last: Partial<Parts> = {};
  #hasBegun = false;

  /** Text with the line ends. */
  write(recorded: Recorded): string {
    const head = this.#hasBegun ? '' : `${JSON.stringify(FORMAT)}\n`;
    this.#hasBegun = true;
    const line = recorded.kind === 'solve' ? this.#solve(recorded) : reportLine(recorded);
    return `${head}${JSON.stringify(line, withInfinity)}\n`;
  }

  #solve({ input, times, plan }: RecordedSolve): SolveLine {
    const { state, previous, profiles, policy } = input;
    const { fleet, engines, demands, atMs, settledSeconds } = state;
    const parts: Parts = { fleet, engines, demands, profiles: [...profiles], policy, previous };
    const changed = PARTS.filter((part) => !isDeepStrictEqual(parts[part], this.#last[part]));
    // What is in force after this solve is what the next one starts from.
    this.#last = { ...parts, previous: plan };
    return {
      kind: 'solve',
      atMs,
      settledSeconds,
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

  /**
   * What a line holds; undefined for the first one.
   *
   * @throws {WardropError} WARDROP_RECORDING_INVALID
   */
  read(line: string): Recorded | undefined {
    this.#lines++;
    let value: unknown;
    try {
      value = JSON.parse(line, fromInfinity);
    } catch (error) {
      throw this.#invalid(`is no JSON: ${(error as Error).message}`);
    }
    if (this.#lines === 1) {
      if (!isDeepStrictEqual(value, FORMAT))
        throw this.#invalid(`does not begin with ${JSON.stringify(FORMAT)}`);
      return undefined;
    }
    const { kind } = value as { kind?: unknown };
    if (kind === 'solve') return this.#solve(value as SolveLine);
    if (kind === 'report' || kind === 'load-report') return reportOf(value as ReportLine);
    throw this.#invalid(`holds neither a solve nor a report`);
  }

  #solve(line: SolveLine): RecordedSolve {
    const parts = { ...this.#last };
    for (const part of PARTS) if (part in line) Object.assign(parts, { [part]: line[part] });
    const { fleet, engines, demands, profiles, policy, previous = null } = parts;
    if (!fleet || !engines || !demands || !profiles || !policy)
      throw this.#invalid('lacks what came before it');
    const plan = line.plan === undefined ? previous : line.plan;
    this.#last = { fleet, engines, demands, profiles, policy, previous: plan };
    const { atMs, settledSeconds, times } = line;
    return {
      kind: 'solve',
      times,
      plan,
      input: {
        previous,
        state: { fleet, atMs, engines, demands, settledSeconds },
        profiles: new Map(profiles as [string, never][]),
        policy,
      },
    };
  }

  #invalid(what: string): WardropError {
    return new WardropError('WARDROP_RECORDING_INVALID', `line ${this.#lines} of the recording ${what}`);
  }
}

interface ReportLine extends Omit<RecordedReport, 'report'> {
  /** The report's bytes in base64. */
  readonly bytes: string;
}

function reportLine({ report, ...rest }: RecordedReport): ReportLine {
  return { ...rest, bytes: Buffer.from(encodeUsageReport(report)).toString('base64') };
}

function reportOf({ bytes, ...rest }: ReportLine): RecordedReport {
  return { ...rest, report: decodeUsageReport(Buffer.from(bytes, 'base64')) };
}

/** JSON has no infinity, which stands for what cannot be reached. */
const INFINITY = '(infinity)';

function withInfinity(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? INFINITY : value;
}

function fromInfinity(_key: string, value: unknown): unknown {
  return value === INFINITY ? Number.POSITIVE_INFINITY : value;
}
