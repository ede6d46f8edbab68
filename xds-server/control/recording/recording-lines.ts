import { decodeUsageReport } from '../../../wire/usage-report-reader.js';
import { encodeUsageReport } from '../../../wire/usage-report-writer.js';
import type { FleetState } from '../../fleet/fleet-state.js';
import type { PlanInput } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import type { Profile } from '../../profiles/profile.js';
import type { SignalsConfig } from '../../signals/known-config.js';
import { withoutLists } from './known-lines.js';
import type { RecordedSignal } from './recorded-signals.js';

/**
 * A recording is lines of JSON. The parts of a solve that are as in the one before are left out, so that a long one is
 * mostly demand and weights. The first line names the format, all others say which line they are: what follows on
 * something that is missing would be taken for something else.
 */
export const FORMAT = 3;
/**
 * The first one did not say what signals knew when a recording began later than the control server; lines had no numbers
 * before the third one.
 */
export const FORMATS: readonly unknown[] = [1, 2, FORMAT];
export const FIRST_WITH_NUMBERS = 3;

/** The parts of a solve, each of which may stay the same from one to the next. */
export interface Parts {
  readonly fleet: FleetState['fleet'];
  readonly engines: FleetState['engines'];
  readonly demands: FleetState['demands'];
  readonly profiles: readonly (readonly [string, unknown])[];
  readonly policy: PlanInput['policy'];
  readonly previous: Plan | null;
}

export const PARTS = ['fleet', 'engines', 'demands', 'profiles', 'policy', 'previous'] as const;

export interface SolveLine extends Partial<Parts> {
  readonly kind: 'solve';
  readonly atMs: number;
  readonly settledSeconds: number;
  /** Absent from recordings of versions for which all pools were one. */
  readonly settledSecondsByPool?: FleetState['settledSecondsByPool'];
  readonly times: readonly number[];
  /** Left out when it is the previous one. */
  readonly plan?: Plan | null;
  readonly failure?: string;
}

export const SIGNAL_KINDS: Readonly<Record<RecordedSignal['kind'], true>> = {
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
export type SignalLine = Omit<RecordedSignal, 'report' | 'config'> & {
  /** A report's bytes in base64. */
  readonly bytes?: string;
  readonly line?: number;
  readonly config?: Omit<SignalsConfig, 'profiles'> & { readonly profiles: readonly [string, Profile][] };
};

export function signalLine(signal: RecordedSignal): SignalLine {
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

export function signalOf({ bytes, config, line: _, ...rest }: SignalLine): RecordedSignal {
  return {
    ...rest,
    ...(bytes !== undefined && { report: decodeUsageReport(Buffer.from(bytes, 'base64')) }),
    ...(config !== undefined && { config: { ...config, profiles: new Map(config.profiles) } }),
  } as RecordedSignal;
}
