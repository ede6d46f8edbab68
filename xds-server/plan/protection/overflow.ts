/** How many requests an engine or a replica has in flight, and how many it should have at most. */
export interface Load {
  readonly id: string;
  readonly inFlight: number;
  readonly most: number;
  /** Above this, requests are turned away, so that no more can be seen; at least `most`. */
  readonly limit: number;
  /** About how long a request takes: so long it takes to see what a change does. */
  readonly requestSeconds: number;
  /** Whether somebody who may serve the same requests has room. */
  readonly hasRoomElsewhere: boolean;
}

/** Time constant of the smoothed number in flight. */
const SMOOTHING_SECONDS = 4;
/**
 * Above `most` by this share, and by this many standard deviations of a random number of that size, is too much.
 * Conversations come in lumps: an engine near its capacity may have three times as many for a while, and whoever leaves then
 * has its prompt computed again elsewhere, which fills the next engine.
 */
const TOO_MUCH_SHARE = 3;
const TOO_MUCH_SIGMA = 2;
/** So is this share of the limit, whatever the above say. */
const TOO_CLOSE_SHARE = 0.8;
/** Below this share of `most` there is room for keys to come back. */
const ROOM_SHARE = 0.75;
/** Part of the surplus that leaves at once; the rest if it is still there when the effect can be seen. */
const GAIN = 0.6;
/** Share of the keys that comes back at once. */
const RETURN_STEP = 0.06;
/** Fractions are multiples of this. */
const STEP = 0.02;
/** Between two changes, at least and at most. */
const LEAST_SETTLE_MS = 3_000;
const LONGEST_SETTLE_MS = 30_000;
/** Keys come back after this many times the wait; a return that was too early doubles it, up to the longest. */
const RETURN_WAITS = 3;
const LONGEST_RETURN_MS = 600_000;
/** After this long with nothing wrong, returns are no longer held back by earlier ones. */
const FORGIVEN_MS = 1_800_000;

interface Place {
  fraction: number;
  inFlight: number;
  seenMs: number;
  changedMs: number;
  /** Waits before keys come back are this many times longer than usual. */
  patience: number;
  isReturning: boolean;
}

/**
 * Shares of keys that engines and replicas pass on while they have more in flight than they should. Leaves fast and comes back
 * slowly: keys leave in proportion to the surplus, one step for each time that its effect takes to show; they come back
 * in small steps once there is clearly room. A return that turns out too early makes the next one wait twice as long, so
 * that a lasting surplus ends in a standing share and not in a swing.
 */
export class Overflow {
  readonly #places = new Map<string, Place>();

  /** Shares above 0, by id. */
  get fractions(): ReadonlyMap<string, number> {
    return new Map([...this.#places].flatMap(([id, { fraction }]) => (fraction > 0 ? [[id, fraction]] : [])));
  }

  /** Takes the loads of now; places that are not among them are forgotten. */
  update(loads: readonly Load[], nowMs: number): void {
    const ids = new Set(loads.map(({ id }) => id));
    for (const id of this.#places.keys()) if (!ids.has(id)) this.#places.delete(id);
    for (const load of loads) this.#updateOne(load, nowMs);
  }

  #updateOne(load: Load, nowMs: number): void {
    let place = this.#places.get(load.id);
    if (place === undefined) {
      place = {
        fraction: 0,
        inFlight: load.inFlight,
        seenMs: nowMs,
        changedMs: Number.NEGATIVE_INFINITY,
        patience: 1,
        isReturning: false,
      };
      this.#places.set(load.id, place);
    }
    const gain = 1 - Math.exp(-(nowMs - place.seenMs) / 1000 / SMOOTHING_SECONDS);
    place.inFlight += gain * (load.inFlight - place.inFlight);
    place.seenMs = nowMs;
    const waitMs = Math.min(LONGEST_SETTLE_MS, Math.max(LEAST_SETTLE_MS, 1_500 * load.requestSeconds));
    const sinceMs = nowMs - place.changedMs;
    if (sinceMs > FORGIVEN_MS) place.patience = 1;
    if (sinceMs < waitMs) return;
    if (isTooMuch(place.inFlight, load)) {
      if (load.hasRoomElsewhere) passOn(place, load.most, nowMs);
      return;
    }
    const returnMs = Math.min(LONGEST_RETURN_MS, RETURN_WAITS * waitMs * place.patience);
    const hasRoom = place.inFlight < ROOM_SHARE * load.most;
    if (place.fraction > 0 && hasRoom && sinceMs >= returnMs) comeBack(place, nowMs);
  }
}

function isTooMuch(inFlight: number, { most, limit }: Load): boolean {
  const surely = most + Math.max(TOO_MUCH_SHARE * most, TOO_MUCH_SIGMA * Math.sqrt(most));
  return inFlight > Math.min(surely, TOO_CLOSE_SHARE * limit);
}

function passOn(place: Place, most: number, nowMs: number): void {
  const surplus = 1 - most / place.inFlight;
  const fraction = place.fraction + (1 - place.fraction) * GAIN * surplus;
  place.fraction = Math.min(1, Number((Math.ceil(fraction / STEP - 1e-9) * STEP).toFixed(6)));
  if (place.isReturning) place.patience *= 2;
  place.isReturning = false;
  place.changedMs = nowMs;
}

function comeBack(place: Place, nowMs: number): void {
  place.fraction = Math.max(0, Number((place.fraction - RETURN_STEP).toFixed(6)));
  place.isReturning = true;
  place.changedMs = nowMs;
}
