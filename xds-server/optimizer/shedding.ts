import { groupBy } from '../collections.js';
import type { MinShare } from '../fleet/policy.js';
import { type TokenMix, workSeconds } from '../profiles/profile.js';
import type { Problem } from './problem/problem.js';
import type { LinearSolver } from './program/linear-program.js';
import { NO_FRACTION, type Search, type SharedPart, SharingProgram } from './program/sharing-program.js';

/** The part of one class of one row that is decided at one level. */
interface Part extends SharedPart {
  /** Of the class among the row's. */
  readonly index: number;
  readonly priority: number;
  /** Of a frontend that nobody hears of. */
  readonly isUnheard: boolean;
}

/** What is served, and where it has room. */
export interface SharedCapacity {
  /** Requests per second that each class of each row gets, in the order of `problem.rows` and their `classes`. */
  readonly served: readonly (readonly number[])[];
  /** Marks arcs on which all that is served finds room. */
  readonly carrying: Uint8Array;
}

/**
 * Requests per second that each class of each row gets (same order as `problem.rows` and their `classes`) when demand
 * does not fit. Guaranteed shares come first, then priorities from high to low, frontends that nobody hears of last in each. Within a level the largest shed
 * fraction is made as small as possible; whoever sits at that bottleneck is held there, and the rest goes on, until
 * nobody's fraction can fall without raising a higher one. Nothing is shed that any free capacity could serve.
 */
export function shareCapacity(
  solver: LinearSolver,
  problem: Problem,
  minShares: readonly MinShare[],
  search: Search,
): SharedCapacity {
  const reachable = ({ row }: Part): boolean => problem.rows[row]!.endArc > problem.rows[row]!.firstArc;
  const sharing = new SharingProgram(solver, problem, search);
  const served = problem.rows.map(({ classes }) => classes.map(() => 0));
  for (const level of partsByLevel(problem, minShares)) {
    let open = level.filter(reachable);
    sharing.ask(open);
    while (open.length > 0) {
      const { fraction, stuck } = sharing.shareAmong(open);
      const settled = fraction <= NO_FRACTION ? open : stuck;
      for (const part of settled) served[part.row]![part.index]! += servedOf(part, fraction);
      const done = new Set(settled);
      open = open.filter((part) => !done.has(part));
    }
  }
  return { served, carrying: sharing.carrying };
}

/** Requests per second that are left of a part. */
function servedOf({ rate }: Part, shedFraction: number): number {
  return shedFraction <= NO_FRACTION ? rate : rate * (1 - shedFraction);
}

/**
 * Guaranteed parts of all classes, then what is left of each priority, highest first; in each what is known to come
 * before what was held of frontends that nobody hears of.
 */
function partsByLevel(problem: Problem, minShares: readonly MinShare[]): Part[][] {
  const guaranteed: Part[] = [];
  const rest: Part[] = [];
  problem.rows.forEach(({ poolId, classes, asked }, row) => {
    classes.forEach((demand, index) => {
      const { priority, isUnheard = false } = demand;
      const minShare = minShares.find((each) => each.poolId === poolId && each.priority === priority);
      const share = minShare?.share ?? 0;
      const size = relativeSize(problem, row, demand);
      const part = { row, index, priority, isUnheard, size };
      if (share > 0) guaranteed.push({ ...part, rate: share * asked[index]! });
      if (share < 1) rest.push({ ...part, rate: (1 - share) * asked[index]! });
    });
  });
  const byPriority = [...groupBy(rest, ({ priority }) => priority)].sort(([a], [b]) => b - a);
  const levels = [guaranteed, ...byPriority.map(([, parts]) => parts)].flatMap((level) => [
    level.filter(({ isUnheard }) => !isUnheard),
    level.filter(({ isUnheard }) => isUnheard),
  ]);
  return levels.map((level) => level.filter(({ rate }) => rate > 0));
}

/** Work of a request over that of its row's mean request, averaged over the row's engines. */
export function relativeSize(problem: Problem, row: number, request: TokenMix): number {
  const { rows, columns, arcColumn, arcWork } = problem;
  const { firstArc, endArc } = rows[row]!;
  let size = 0;
  for (let arc = firstArc; arc < endArc; arc++) {
    size += workSeconds(columns[arcColumn[arc]!]!.profile, request) / arcWork[arc]! / (endArc - firstArc);
  }
  return size;
}
