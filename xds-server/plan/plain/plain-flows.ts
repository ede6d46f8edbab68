import type { Steps } from '../steps.js';

/** An engine that can serve a row. */
export interface Place {
  readonly engineId: string;
  /** Its index in every `Room`. */
  readonly engine: number;
  readonly networkSeconds: number;
  /** Replica-seconds of the row's mean request. */
  readonly workSeconds: number;
  /** Bounds of its weight. */
  readonly min: number;
  readonly max: number;
}

/** What is shared out among engines. */
export interface Placeable {
  readonly requestsPerSecond: number;
  /** The nearest first. */
  readonly places: readonly Place[];
}

/** Replica-seconds per second that each engine has left. */
export type Room = Readonly<Float64Array>;

/** Demand is placed in parts of this share of a row, and in halves of what finds no room. */
const LARGEST_PART = 1 / 32;
const SMALLEST_PART = 2 ** -20;
/** Engines whose round trips differ by no more than this are equally near. */
const SAME_DISTANCE_SECONDS = 0.005;
/** Less than this share of its room is none: a full engine stops all who use it, for a sliver as well. */
const SLIVER = 1e-3;
/** Relative rounding of what is taken. */
const ROUNDING = 1e-9;

/**
 * Requests per second by row and place: each row of a group in turn places a part of its demand on the nearest engines that have room,
 * until there is none, then the next group does; then all go on with the next of `rooms`, which are added up. Every part keeps the
 * bounds, so that their sum does. A step is one part of one row.
 *
 * @param groups indices of rows
 */
export function* plainFlows(
  rows: readonly Placeable[],
  rooms: readonly Room[],
  groups: readonly (readonly number[])[],
): Steps<Float64Array[]> {
  const flows = rows.map(({ places }) => new Float64Array(places.length));
  const rest = rows.map(({ requestsPerSecond }) => (requestsPerSecond > 0 ? 1 : 0));
  const space = new Space(rooms[0]!.length);
  for (const room of rooms) {
    space.add(room);
    for (const group of groups) {
      for (let part = LARGEST_PART; part >= SMALLEST_PART; part /= 2) {
        let open = group.filter((row) => rest[row]! > 0);
        while (open.length > 0) {
          const going: number[] = [];
          for (const row of open) {
            const share = Math.min(part, rest[row]!);
            yield;
            if (!space.take(rows[row]!, share, flows[row]!)) continue;
            rest[row]! -= share;
            if (rest[row]! > 0) going.push(row);
          }
          open = going;
        }
      }
    }
  }
  return flows;
}

/** What engines have left. */
class Space {
  readonly #left: Float64Array;
  readonly #slivers: Float64Array;
  /** Requests per second by place, of the part at hand. */
  readonly #taken: Float64Array;

  constructor(engines: number) {
    this.#left = new Float64Array(engines);
    this.#slivers = new Float64Array(engines);
    this.#taken = new Float64Array(engines);
  }

  add(room: Room): void {
    for (let engine = 0; engine < room.length; engine++) {
      this.#left[engine]! += room[engine]!;
      this.#slivers[engine]! += SLIVER * room[engine]!;
    }
  }

  /** Places this share of a row, if all of it has room. */
  take({ requestsPerSecond, places }: Placeable, share: number, flows: Float64Array): boolean {
    const taken = this.#taken;
    const wanted = share * requestsPerSecond;
    let rest = wanted;
    for (let at = 0; at < places.length; at++) {
      taken[at] = places[at]!.min * wanted;
      if (taken[at]! > 0 && this.#roomAt(places, at, wanted) < -ROUNDING * wanted) return false;
      rest -= taken[at]!;
    }
    for (let from = 0, end = 0; from < places.length && rest > ROUNDING * wanted; from = end) {
      end = endOfNear(places, from);
      let room = 0;
      for (let at = from; at < end; at++) room += Math.max(0, this.#roomAt(places, at, wanted));
      if (room <= 0) continue;
      const used = Math.min(1, rest / room);
      for (let at = from; at < end; at++) taken[at]! += used * Math.max(0, this.#roomAt(places, at, wanted));
      rest -= used * room;
    }
    if (rest > ROUNDING * wanted) return false;
    for (let at = 0; at < places.length; at++) {
      const { engine, workSeconds } = places[at]!;
      flows[at]! += taken[at]!;
      this.#left[engine]! -= taken[at]! * workSeconds;
    }
    return true;
  }

  /** Requests per second that a place takes beside what it has of the part at hand. */
  #roomAt(places: readonly Place[], at: number, wanted: number): number {
    const { engine, workSeconds, max } = places[at]!;
    const has = this.#left[engine]!;
    const usable = has > this.#slivers[engine]! ? has : 0;
    return Math.min(usable / workSeconds, max * wanted) - this.#taken[at]!;
  }
}

/** Where engines are farther away than the first of those from here on. */
function endOfNear(places: readonly Place[], from: number): number {
  const limit = places[from]!.networkSeconds + SAME_DISTANCE_SECONDS;
  let end = from + 1;
  while (end < places.length && places[end]!.networkSeconds <= limit) end++;
  return end;
}
