import { lowerMedian } from '../../collections.js';
import type { Pool } from '../../fleet/fleet.js';

/** Engines of one profile, and of one pool: what they have in common is no fault of one. `Known`: what is known of each. */
export class Likes<Known> {
  readonly #groups: readonly (readonly string[])[];
  readonly #known: ReadonlyMap<string, Known>;
  readonly #middles = new Map<(known: Known) => number | undefined, ReadonlyMap<string, number>>();

  constructor(
    engines: readonly { readonly id: string; readonly profileId: string }[],
    pools: readonly Pool[],
    known: ReadonlyMap<string, Known>,
  ) {
    const ofProfile = new Map<string, string[]>(engines.map(({ profileId }) => [profileId, []]));
    for (const { id, profileId } of engines) ofProfile.get(profileId)!.push(id);
    this.#groups = [...ofProfile.values(), ...pools.map(({ engineIds }) => engineIds)];
    this.#known = known;
  }

  /** How many times slower than usual an engine is, beside its like; nobody is compared who is not slow. */
  relative(engineId: string, times: number, timesOf: (known: Known) => number | undefined): number {
    if (times <= 1) return times;
    let middles = this.#middles.get(timesOf);
    if (middles === undefined) {
      middles = this.#middlesOf(timesOf);
      this.#middles.set(timesOf, middles);
    }
    return times / (middles.get(engineId) ?? 1);
  }

  /** By engine, at least 1: the most of its groups' middle ones. */
  #middlesOf(timesOf: (known: Known) => number | undefined): ReadonlyMap<string, number> {
    const times = new Map<string, number>();
    for (const [id, known] of this.#known) {
      const own = timesOf(known);
      if (own !== undefined) times.set(id, own);
    }
    const middles = new Map<string, number>();
    for (const group of this.#groups) {
      const told = group.filter((id) => times.has(id));
      if (told.length < 2) continue;
      const middle = lowerMedian(told.map((id) => times.get(id)!));
      for (const id of told) middles.set(id, Math.max(middles.get(id) ?? 1, middle));
    }
    return middles;
  }
}
