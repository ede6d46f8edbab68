import { MOST_HEALTH } from '../../fleet/fleet-state.js';
import { type CapacityLook, shareOf } from './capacity-look.js';
import { type SlownessLimit, SURE_SIGMAS, surelyDone } from './throughput.js';

/** Some requests always go where they may, to see whether it can do more. */
const LEAST_SHARE = 0.1;
/** A full engine counts when it has been full for this long beyond the time of a look; the best of that time counts. */
const FULL_MS = 3_000;
/** A correction begins when it is sure to be more than this. */
const ENTRY = 0.05;
/** A correction is left alone while a full engine gets done what differs from it by less. */
const DEAD_BAND = 0.05;
/** Evidence below capacity must last for this long before the share rises by one step. */
const CALM_MS = 20_000;
const STEP = 1.1;
/** Half of that for an engine that had less than this share left; then a step goes half of the way to what is shown, as a multiple. */
const LOW_SHARE = 0.5;
const LOW_CALM_MS = 10_000;
/** An engine that has shown with room what it had shown when full need not wait, and may rise by so much. */
const CONFIRMED_STEP = 2;
/** What an engine with room must show beyond its share; it takes the curves of the profile for right, so it is less sure. */
const RISE_FACTOR = 1.15;
/** With room and this share of what the profile says, a lowered share ends step by step. */
const USUAL = 0.9;
/** A raised share ends when an engine shows less than this. */
const NO_LONGER_RAISED = 1.1;
/** Less than this share of its capacity in use tells nothing about an engine that is to get more than that. */
const LEAST_DONE = 0.5;
/** A rise that was too early makes the next one wait so many times as long, up to this many times. */
const PATIENCE_STEP = 2;
const MOST_PATIENCE = 64;
const FORGIVEN_MS = 3_600_000;

/** What an engine is taken to be able to do, against its profile. */
export interface CapacityView {
  readonly engineId: string;
  /** `usual`: as the profile says. `corrected`. `observed`: would be, but corrections are not in force. */
  readonly state: 'usual' | 'corrected' | 'observed';
  /** 0.1..1.25 of the capacity that its profile gives it. */
  readonly share: number;
  readonly sinceMs: number | null;
  /** When it was last lowered. */
  readonly loweredMs: number | null;
  /** The last look; null while there is too little to tell. */
  readonly evidence:
    | (CapacityLook & {
        /** Share of the profile's capacity that this look alone says. */
        readonly share: number;
      })
    | null;
  /** In words; null without a correction. */
  readonly endsWhen: string | null;
}

/**
 * The capacity that one engine has shown, as a share of what its profile says. It falls and rises to what a full engine
 * gets done. Of an engine with room it can only be concluded, from how many requests it holds at what it gets done, so
 * that only makes it rise, in steps, and never because the load fell: an engine that is slower than its profile holds
 * more requests at any load.
 */
export class MeasuredCapacity {
  #share = 1;
  #sinceMs: number | undefined;
  #look: CapacityLook | undefined;
  #full: { readonly sinceMs: number; readonly most: CapacityLook } | undefined;
  #calm: { readonly sinceMs: number; readonly least: number; readonly most: number } | undefined;
  #patience = 1;
  #isConfirmed = false;
  #isLow = false;
  #loweredMs: number | undefined;
  /** Since when it has shown what it was last lowered to. */
  #lowSinceMs = Number.NEGATIVE_INFINITY;
  #roseMs = Number.NEGATIVE_INFINITY;

  /** 0.1..1.25; 1 while there is nothing to correct. */
  get share(): number {
    return this.#share;
  }

  /** When the correction began; undefined while there is none. */
  get sinceMs(): number | undefined {
    return this.#sinceMs;
  }

  /** Goes on with a correction from before. */
  resume(share: number, sinceMs: number): void {
    this.#share = bounded(share);
    this.#sinceMs = this.#share === 1 ? undefined : sinceMs;
    this.#isLow = this.#share < LOW_SHARE;
  }

  /**
   * Requests are found to be `factor` times as much work as was taken until now: what this explains of a correction is
   * no longer corrected.
   */
  explain(factor: number): void {
    this.#full = undefined;
    this.#calm = undefined;
    const share = this.#share * (Number.isFinite(factor) ? factor : 1);
    this.#share = this.#share < 1 ? between(this.#share, share, 1) : between(1, share, this.#share);
    if (this.#share === 1) this.end();
  }

  end(): void {
    this.#share = 1;
    this.#sinceMs = undefined;
  }

  /**
   * Takes one look; undefined when nothing can be said now, which changes nothing. `isUsual`: requests cost as much work as
   * they usually do; if not, the share does not fall unless answers tell the work. `limit`: how slow it can be at most by
   * what it has got done over a short time, as the end of a slowness shows in that first.
   */
  accept(look: CapacityLook | undefined, isUsual: boolean, nowMs: number, limit?: SlownessLimit): void {
    this.#look = look;
    const isTelling = look?.isFull && (isUsual || look.knowsCache || look.mostRho > this.#share);
    this.#full = isTelling ? moreOf(this.#full, look, nowMs) : undefined;
    this.#calm =
      look === undefined || look.isFull ? undefined : rangeOf(this.#calm, look, this.#enough, nowMs);
    if (this.#full !== undefined && nowMs - this.#full.sinceMs >= FULL_MS) {
      this.#meet(this.#full.most, this.#full.sinceMs, nowMs);
      this.#full = undefined;
    }
    if (look !== undefined)
      this.#credit(surelyDone(look.doneRho, look.answers), nowMs - look.seconds * 1_000, nowMs);
    if (look !== undefined && limit !== undefined) this.#credit(1 / limit.slowness, limit.sinceMs, nowMs);
    if (this.#calm !== undefined && nowMs - this.#calm.sinceMs >= this.#calmMs) {
      this.#conclude(this.#calm, look!, nowMs);
      this.#calm = undefined;
    }
  }

  /** What looks must say at least for a rise. */
  get #enough(): number {
    const more = RISE_FACTOR * this.#share;
    return this.#share < 1 ? Math.min(USUAL, more) : more;
  }

  get #calmMs(): number {
    if (this.#isConfirmed && this.#share < 1) return LOW_CALM_MS;
    return (this.#isLow ? LOW_CALM_MS : CALM_MS) * this.#patience;
  }

  view(engineId: string): CapacityView {
    const look = this.#look;
    return {
      engineId,
      state: this.#sinceMs === undefined ? 'usual' : 'corrected',
      share: this.#share,
      sinceMs: this.#sinceMs ?? null,
      loweredMs: this.#loweredMs ?? null,
      evidence: look === undefined ? null : { ...look, share: shareOf(look) },
      endsWhen: endOf(this.#share),
    };
  }

  /**
   * A full engine shows what it can do; between what it got done and the most that this may have been there is nothing to
   * correct. It does not get more than its profile says before it has shown room.
   */
  #meet({ seconds, doneRho, mostRho, answers }: CapacityLook, sinceMs: number, nowMs: number): void {
    // Who answers nothing is not slow but broken, which guardrails and penalties see to.
    if (answers < 1) return;
    const share = this.#share;
    const doubt = SURE_SIGMAS / Math.sqrt(Math.max(1, answers));
    if (mostRho < share) {
      const isSure = mostRho * (1 + doubt) < 1 - ENTRY;
      const goal = isSure || share < 1 ? mostRho : Math.max(1, mostRho);
      if (goal > share - DEAD_BAND) return;
      this.#lowSinceMs = sinceMs - seconds * 1_000;
      this.#fallTo(goal, nowMs);
    } else if (Math.min(1, doneRho) >= share + DEAD_BAND) this.#riseTo(Math.min(1, doneRho), nowMs);
  }

  /** What an engine surely gets done, it can do; what it got done before it was lowered says nothing. */
  #credit(surely: number, sinceMs: number, nowMs: number): void {
    if (sinceMs < this.#lowSinceMs) return;
    if (this.#share < 1 && surely >= this.#share + DEAD_BAND) this.#riseTo(Math.min(1, surely), nowMs);
  }

  /** An engine with room lets conclude what it could do. */
  #conclude(
    { least, most }: { least: number; most: number },
    { doneRho }: CapacityLook,
    nowMs: number,
  ): void {
    const share = this.#share;
    if (share > 1 && most < NO_LONGER_RAISED) this.#fallTo(1, nowMs);
    else if (share < 1 && !this.#isConfirmed && most < Math.sqrt(share)) this.#isConfirmed = true;
    else if (least < this.#enough) return;
    else if (share < 1 && least >= USUAL) this.#riseTo(Math.min(1, this.#stepUp(least)), nowMs);
    else if (share < 1 || doneRho >= LEAST_DONE) this.#riseTo(Math.min(this.#stepUp(least), least), nowMs);
  }

  #stepUp(shown: number): number {
    const share = this.#share;
    if (share < 1 && this.#isConfirmed) return CONFIRMED_STEP * share;
    return this.#isLow ? Math.max(STEP * share, Math.sqrt(share * shown)) : STEP * share;
  }

  #fallTo(share: number, nowMs: number): void {
    this.#loweredMs = nowMs;
    this.#isConfirmed = false;
    this.#isLow ||= share < LOW_SHARE;
    const sinceRise = nowMs - this.#roseMs;
    if (sinceRise > FORGIVEN_MS) this.#patience = 1;
    else this.#patience = Math.min(MOST_PATIENCE, PATIENCE_STEP * this.#patience);
    this.#moveTo(share, nowMs);
  }

  #riseTo(share: number, nowMs: number): void {
    this.#roseMs = nowMs;
    // Just short of 1 there is nothing left to correct.
    this.#moveTo(Math.abs(share - 1) < DEAD_BAND ? 1 : share, nowMs);
  }

  #moveTo(share: number, nowMs: number): void {
    this.#share = bounded(share);
    this.#sinceMs = this.#share === 1 ? undefined : (this.#sinceMs ?? nowMs);
    if (this.#share === 1) this.#isLow = false;
  }

  save() {
    return {
      share: this.#share,
      sinceMs: this.#sinceMs,
      look: this.#look,
      full: this.#full,
      calm: this.#calm,
      patience: this.#patience,
      isConfirmed: this.#isConfirmed,
      isLow: this.#isLow,
      loweredMs: this.#loweredMs,
      lowSinceMs: this.#lowSinceMs,
      roseMs: this.#roseMs,
    };
  }

  restore(saved: SavedMeasuredCapacity): void {
    this.#share = saved.share;
    this.#sinceMs = saved.sinceMs;
    this.#look = saved.look;
    this.#full = saved.full;
    this.#calm = saved.calm;
    this.#patience = saved.patience;
    this.#isConfirmed = saved.isConfirmed;
    this.#isLow = saved.isLow;
    this.#loweredMs = saved.loweredMs;
    this.#lowSinceMs = saved.lowSinceMs;
    this.#roseMs = saved.roseMs;
  }
}

export type SavedMeasuredCapacity = ReturnType<MeasuredCapacity['save']>;

function between(least: number, value: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}

function bounded(share: number): number {
  return between(LEAST_SHARE, share, MOST_HEALTH);
}

/** The look that shows the most since the engine is full. */
function moreOf(
  before: { readonly sinceMs: number; readonly most: CapacityLook } | undefined,
  look: CapacityLook,
  nowMs: number,
): { readonly sinceMs: number; readonly most: CapacityLook } {
  if (before === undefined) return { sinceMs: nowMs, most: look };
  return look.mostRho > before.most.mostRho ? { ...before, most: look } : before;
}

/** The shares that looks at an engine with room say; anew when they begin to say enough for a rise. */
function rangeOf(
  before: { readonly sinceMs: number; readonly least: number; readonly most: number } | undefined,
  look: CapacityLook,
  enough: number,
  nowMs: number,
): { readonly sinceMs: number; readonly least: number; readonly most: number } {
  const share = shareOf(look);
  const isNew = before === undefined || (before.least < enough && share >= enough);
  const { sinceMs, least, most } = isNew ? { sinceMs: nowMs, least: share, most: share } : before;
  return { sinceMs, least: Math.min(least, share), most: Math.max(most, share) };
}

function endOf(share: number): string | null {
  if (share === 1) return null;
  return share < 1
    ? 'it rises while the engine is full and gets more done, and step by step while it has room and holds fewer requests than one of this share would'
    : 'it falls when the engine is full and gets less done, and ends when it holds as many requests as its profile says';
}
