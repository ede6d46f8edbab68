import type { Stay } from '../capacity/throughput.js';
import { type LatencyKind, type LatencySample, typical } from './latency-samples.js';
import type { Likes } from './likes.js';

/** What says how slow an engine is. */
export interface Evidence {
  /** Which times say so: of streams, of whole answers, between tokens, or how long requests stay by their number. */
  readonly kind: LatencyKind | 'stay';
  readonly answers: number;
  /** Typical seconds, by the profile at the engine's load, and the most that load explains. */
  readonly observedSeconds: number;
  readonly expectedSeconds: number;
  readonly mostSeconds: number;
  /** Typical observed ÷ most. */
  readonly excess: number;
  /** The same divided by that of engines of its kind or pool, if they are slow too. */
  readonly relativeExcess: number;
  /**
   * Times slower that the engine is by its answers at what it gets done, divided in the same way; a penalty does not fall
   * below it. Null while there are too few answers.
   */
  readonly slowness: number | null;
}

/** What answers of one kind say, however few they are. */
export interface Lateness {
  readonly kind: LatencyKind;
  readonly samples: readonly LatencySample[];
  readonly excess: number;
  readonly slowness: number;
}

/** All that is known of an engine. */
export interface Known {
  readonly answers: readonly Lateness[];
  readonly stay: Stay | undefined;
}

/** Less than this is not worth a penalty, however many times it is. */
const LEAST_EXCESS_SECONDS = 0.02;
const LEAST_EXCESS_PACE_SECONDS = 0.005;
/** Answers that are late by less than the second begin no penalty where those of an engine would be as late that is less than the first slower. */
const LEAST_SLOWNESS = 1.5;
const SURE_EXCESS = 5;
/** How long evidence must last. First tokens are late, and whole answers with them, behind every run of long prompts. */
const ENTRY_MS: Readonly<Record<Evidence['kind'], number>> = {
  ...{ firstToken: 4_000, whole: 4_000 },
  ...{ pace: 2_000, stay: 2_000 },
};

/**
 * Like is compared with like: where all streams begin late, whole answers may be quick. Of the others, a few answers are enough to
 * say that it is not one engine alone.
 */
const EXCESSES = ofKinds(({ excess }) => excess);
const SLOWNESSES = ofKinds(({ slowness }) => slowness);
/** Few engines hold so much that their stays tell anything. */
const WORST = ({ answers, stay }: Known) => {
  const all = [...answers.map(({ excess }) => excess), ...(stay === undefined ? [] : [excessOf(stay)])];
  return all.length === 0 ? undefined : Math.max(...all);
};

function ofKinds(value: (known: Lateness) => number) {
  const of = (kind: LatencyKind) => (known: Known) => {
    const answers = known.answers.find((it) => it.kind === kind);
    return answers && value(answers);
  };
  return { firstToken: of('firstToken'), whole: of('whole'), pace: of('pace') };
}

export function latenessOf(kind: LatencyKind, samples: readonly LatencySample[]): Lateness {
  const slowness = typical(samples, (sample) => sample.slowness);
  return { kind, samples, excess: typical(samples, overMost), slowness };
}

/** The worst of what there is enough of to judge an engine by, beside its like; null without anything. */
export function worstOf(engineId: string, { answers, stay }: Known, likes: Likes<Known>): Evidence | null {
  const slownesses = answers.map((it) => likes.relative(engineId, it.slowness, SLOWNESSES[it.kind]));
  const slowness = slownesses.length === 0 ? null : Math.max(...slownesses);
  const all = answers.map((it) => {
    const relativeExcess = likes.relative(engineId, it.excess, EXCESSES[it.kind]);
    return { relativeExcess, evidence: () => ofAnswers(it, relativeExcess, slowness) };
  });
  if (stay !== undefined) {
    const relativeExcess = likes.relative(engineId, excessOf(stay), WORST);
    all.push({ relativeExcess, evidence: () => ofStay(stay, relativeExcess, slowness) });
  }
  all.sort((a, b) => b.relativeExcess - a.relativeExcess);
  // What is worse by milliseconds only gives way.
  const late = all.filter(({ relativeExcess }, at) => at === 0 || relativeExcess > 1);
  return late.map(({ evidence }) => evidence()).sort((a, b) => severityBy(b) - severityBy(a))[0] ?? null;
}

function ofAnswers(
  { kind, samples, excess }: Lateness,
  relativeExcess: number,
  slowness: number | null,
): Evidence {
  return {
    kind,
    answers: samples.reduce((sum, { count }) => sum + count, 0),
    observedSeconds: typical(samples, ({ observedSeconds }) => observedSeconds),
    expectedSeconds: typical(samples, ({ expectedSeconds }) => expectedSeconds),
    mostSeconds: typical(samples, ({ mostSeconds }) => mostSeconds),
    ...{ excess, relativeExcess, slowness },
  };
}

function ofStay(stay: Stay, relativeExcess: number, slowness: number | null): Evidence {
  const excess = excessOf(stay);
  return { kind: 'stay', ...stay, mostSeconds: stay.expectedSeconds, excess, relativeExcess, slowness };
}

function excessOf({ observedSeconds, expectedSeconds }: Stay): number {
  return observedSeconds / expectedSeconds;
}

function overMost({ observedSeconds, mostSeconds }: LatencySample): number {
  return observedSeconds / Math.max(mostSeconds, 1e-6);
}

/** How slow an engine is to be taken for; a few milliseconds are never worth anything. */
export function severityBy(evidence: Evidence): number {
  const least = evidence.kind === 'pace' ? LEAST_EXCESS_PACE_SECONDS : LEAST_EXCESS_SECONDS;
  const isSmall = evidence.observedSeconds - evidence.mostSeconds < least;
  return isSmall ? 1 : evidence.relativeExcess;
}

/**
 * How long evidence must last for a penalty. At high load a few requests more than usual, or longer ones, make answers as late as
 * several times the load does, and so does an engine that is only a little slower.
 */
export function entryMsOf({ kind, relativeExcess, slowness }: Evidence): number {
  const saysLittle = kind !== 'stay' && kind !== 'pace' && relativeExcess < SURE_EXCESS;
  return saysLittle && (slowness ?? 1) < LEAST_SLOWNESS ? Number.POSITIVE_INFINITY : ENTRY_MS[kind];
}
