/** An engine that can serve a row. */
export interface Place {
  readonly engineId: string;
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

/** Replica-seconds per second that engines have left, by id. */
export type Room = ReadonlyMap<string, number>;

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
 * bounds, so that their sum does.
 *
 * @param groups indices of rows
 */
export function plainFlows(
  rows: readonly Placeable[],
  rooms: readonly Room[],
  groups: readonly (readonly number[])[],
): Float64Array[] {
  const flows = rows.map(({ places }) => new Float64Array(places.length));
  const rest = rows.map(({ requestsPerSecond }) => (requestsPerSecond > 0 ? 1 : 0));
  const left = new Map<string, number>();
  const slivers = new Map<string, number>();
  for (const room of rooms) {
    for (const [engineId, more] of room) {
      left.set(engineId, (left.get(engineId) ?? 0) + more);
      slivers.set(engineId, (slivers.get(engineId) ?? 0) + SLIVER * more);
    }
    for (const group of groups) {
      for (let part = LARGEST_PART; part >= SMALLEST_PART; part /= 2) {
        let open = group.filter((row) => rest[row]! > 0);
        while (open.length > 0) {
          open = open.filter((row) => {
            const share = Math.min(part, rest[row]!);
            if (!take(rows[row]!, share, left, slivers, flows[row]!)) return false;
            rest[row]! -= share;
            return rest[row]! > 0;
          });
        }
      }
    }
  }
  return flows;
}

/** Places this share of a row, if all of it has room. */
function take(
  { requestsPerSecond, places }: Placeable,
  share: number,
  left: Map<string, number>,
  slivers: Room,
  flows: Float64Array,
): boolean {
  const wanted = share * requestsPerSecond;
  const taken = places.map(({ min }) => min * wanted);
  const roomAt = (at: number): number => {
    const { engineId, workSeconds, max } = places[at]!;
    const has = left.get(engineId)!;
    const usable = has > slivers.get(engineId)! ? has : 0;
    return Math.min(usable / workSeconds, max * wanted) - taken[at]!;
  };
  let rest = wanted;
  for (let at = 0; at < places.length; at++) {
    if (taken[at]! > 0 && roomAt(at) < -ROUNDING * wanted) return false;
    rest -= taken[at]!;
  }
  for (let from = 0, end = 0; from < places.length && rest > ROUNDING * wanted; from = end) {
    end = endOfNear(places, from);
    let room = 0;
    for (let at = from; at < end; at++) room += Math.max(0, roomAt(at));
    if (room <= 0) continue;
    const used = Math.min(1, rest / room);
    for (let at = from; at < end; at++) taken[at]! += used * Math.max(0, roomAt(at));
    rest -= used * room;
  }
  if (rest > ROUNDING * wanted) return false;
  places.forEach(({ engineId, workSeconds }, at) => {
    flows[at]! += taken[at]!;
    left.set(engineId, left.get(engineId)! - taken[at]! * workSeconds);
  });
  return true;
}

/** Where engines are farther away than the first of those from here on. */
function endOfNear(places: readonly Place[], from: number): number {
  const limit = places[from]!.networkSeconds + SAME_DISTANCE_SECONDS;
  let end = from + 1;
  while (end < places.length && places[end]!.networkSeconds <= limit) end++;
  return end;
}
