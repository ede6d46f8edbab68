import { groupBy, sum } from '../../collections.js';
import type { ShedFraction } from '../../optimizer/solution.js';
import type { Steps } from '../steps.js';
import type { Room } from './plain-flows.js';

/** One class of a row whose weights are known. */
export interface PlainClass {
  readonly row: number;
  readonly priority: number;
  readonly requestsPerSecond: number;
  /** Share that is served whatever the priority. */
  readonly minShare: number;
  readonly work: readonly Work[];
}

/** Replica-seconds that one request means for an engine of its row: its work there times the weight, above 0. */
interface Work {
  /** Index in `Room`. */
  readonly engine: number;
  readonly seconds: number;
}

/** Part of a class that is decided together with others. */
interface Part {
  readonly of: PlainClass;
  readonly requestsPerSecond: number;
}

/** An engine with no more room than this share of what it had is full. */
const FULL = 1e-9;
/** Rates that differ by no more than this share are the same. */
const SAME = 0.01;

/**
 * What is refused of each class, in the same order: guaranteed shares come first, then priorities from high to low. In each, the same
 * share of all is served, until an engine is full; who uses it gets no more, and the others go on. A step is what fills an engine.
 */
export function* plainShed(classes: readonly PlainClass[], room: Room): Steps<ShedFraction[]> {
  const left = Float64Array.from(room);
  const served = new Map<PlainClass, number>();
  const guaranteed = classes.map((of) => partOf(of, of.minShare));
  const rest = classes.map((of) => partOf(of, 1 - of.minShare));
  const byPriority = [...groupBy(rest, ({ of }) => of.priority)].sort(([a], [b]) => b - a);
  for (const level of [guaranteed, ...byPriority.map(([, parts]) => parts)]) {
    yield* serve(
      level.filter(({ requestsPerSecond }) => requestsPerSecond > 0),
      room,
      left,
      served,
    );
  }
  return classes.map((each) => {
    const { priority, requestsPerSecond } = each;
    const got = served.get(each) ?? 0;
    return { priority, fraction: requestsPerSecond > 0 ? Math.max(0, 1 - got / requestsPerSecond) : 0 };
  });
}

/** Whether the first refuses clearly less than the second of the most important classes of which they do not refuse the same. */
export function refusesLess(
  classes: readonly PlainClass[],
  first: readonly ShedFraction[],
  second: readonly ShedFraction[],
): boolean {
  const indices = classes.map((_, at) => at);
  const levels = [...groupBy(indices, (at) => classes[at]!.priority)].sort(([a], [b]) => b - a);
  for (const [, level] of levels) {
    const refused = (by: readonly ShedFraction[]) =>
      sum(level.map((at) => classes[at]!.requestsPerSecond * by[at]!.fraction));
    const [less, more] = [refused(first), refused(second)];
    if (Math.abs(less - more) > SAME * Math.max(less, more)) return less < more;
  }
  return false;
}

function partOf(of: PlainClass, share: number): Part {
  return { of, requestsPerSecond: share * of.requestsPerSecond };
}

function* serve(
  level: readonly Part[],
  room: Room,
  left: Float64Array,
  served: Map<PlainClass, number>,
): Steps<void> {
  const isOpen = ({ of }: Part) =>
    of.work.length > 0 && !of.work.some(({ engine }) => left[engine]! <= FULL * room[engine]!);
  let open = level.filter(isOpen);
  let share = 0;
  while (open.length > 0 && share < 1) {
    const asked = new Float64Array(left.length);
    for (const { of, requestsPerSecond } of open) {
      for (const { engine, seconds } of of.work) asked[engine]! += requestsPerSecond * seconds;
    }
    let step = 1 - share;
    for (let engine = 0; engine < asked.length; engine++) {
      if (asked[engine]! > 0) step = Math.min(step, left[engine]! / asked[engine]!);
    }
    for (const { of, requestsPerSecond } of open) {
      served.set(of, (served.get(of) ?? 0) + step * requestsPerSecond);
    }
    for (let engine = 0; engine < asked.length; engine++) left[engine]! -= step * asked[engine]!;
    share += step;
    open = open.filter(isOpen);
    yield;
  }
}
