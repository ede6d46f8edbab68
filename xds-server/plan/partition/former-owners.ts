import { NOBODY } from './tiling.js';

/** A part of a partition's line and an owner that it had before. */
export interface Claim {
  readonly start: number;
  readonly end: number;
  readonly owner: number;
}

/**
 * Who owned the parts of a partition before: claims, latest first, at most one for each point and owner and none of
 * the present owner. An owner that grows takes back what it lost last, so a change and its reverse leave the
 * partition as it was.
 */
export class FormerOwners {
  readonly #claims: Claim[];
  /** How many claims at the front are new; older ones must not grow, or they would pass for new. */
  #fresh = 0;

  /** `claims` latest first. */
  constructor(claims: readonly Claim[] = []) {
    this.#claims = [...claims];
  }

  /** All claims, latest first. */
  all(): readonly Claim[] {
    return [...this.#claims];
  }

  /**
   * At most `limit` claims, latest first. Half of them are reserved for owners that are away: who only gave away a
   * part has the rest to return to.
   */
  remembered(limit: number, isAway: (owner: number) => boolean): readonly Claim[] {
    const away = this.#claims.filter(({ owner }) => isAway(owner)).slice(0, Math.ceil(limit / 2));
    const kept = new Set(away);
    for (const claim of this.#claims) if (kept.size < limit) kept.add(claim);
    return this.#claims.filter((claim) => kept.has(claim));
  }

  /** Notes that [start, end) goes from one owner to another. */
  transferred(start: number, end: number, from: number, to: number): void {
    for (let index = this.#claims.length - 1; index >= 0; index--) {
      const claim = this.#claims[index]!;
      if (claim.end <= start || claim.start >= end || (claim.owner !== from && claim.owner !== to)) continue;
      const rest = without(claim, start, end);
      this.#claims.splice(index, 1, ...rest);
      if (index < this.#fresh) this.#fresh += rest.length - 1;
    }
    if (from !== NOBODY) this.#add(start, end, from);
  }

  #add(start: number, end: number, owner: number): void {
    const latest = this.#fresh > 0 ? this.#claims[0] : undefined;
    if (latest?.owner === owner && latest.end === start) {
      this.#claims[0] = { ...latest, end };
    } else if (latest?.owner === owner && latest.start === end) {
      this.#claims[0] = { ...latest, start };
    } else {
      this.#claims.unshift({ start, end, owner });
      this.#fresh++;
    }
  }
}

function without(claim: Claim, start: number, end: number): Claim[] {
  const rest: Claim[] = [];
  if (claim.start < start) rest.push({ ...claim, end: start });
  if (claim.end > end) rest.push({ ...claim, start: end });
  return rest;
}
