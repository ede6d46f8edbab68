import { mean, sum } from '../../collections.js';
import type { Profile, TokenMix } from '../../profiles/profile.js';
import { packRows, unpackRows } from '../saved.js';
import { rhoOf } from './load-by-profile.js';

/** Looks of which the mean counts, 8 s to 64 s: a lot from outside is found by a few, a little takes many. */
const WINDOWS = [4, 6, 8, 12, 16, 24, 32];
const LONGEST = 32;
/** Before so many looks nothing is said: how much they scatter is not known. */
const LEAST_READINGS = 8;
/** A mean is beyond doubt when it is off by so many of its standard errors. */
const DEVIATIONS = 5;
/** Fewer requests from outside than this, or than this share of all, are left out of account; half as many end it. */
const LEAST_REQUESTS = 3;
const LEAST_SHARE = 0.15;
/** With fewer requests of ours at the engine, they do not tell how long a request takes. */
const ENOUGH_OURS = 5;
const LEAST_HEALTH = 0.1;
/** Health is told in steps of this size, and moves by two of them or more. */
const STEP = 0.05;
const DEAD_STEPS = 2;

/** One look at an engine. */
export interface LoadReading {
  /** Requests running and waiting on all its replicas, by its own account. */
  readonly requests: number;
  /** Requests that Wardrop's frontends have at it. */
  readonly ours: number;
  /** Utilisation by what frontends send. */
  readonly ourRho: number;
  readonly replicas: number;
}

/** What tells how much work the requests at an engine are. */
export interface RequestsMean {
  readonly profile: Profile;
  readonly mix: TokenMix;
  /** Most requests that a replica may have at a time; undefined where nobody has said. */
  readonly maxInFlight?: number | undefined;
}

/** What is known about work that reaches an engine without passing Wardrop. */
export interface OutsideView {
  readonly requests: number;
  /** Utilisation that they cause. */
  readonly rho: number;
}

/**
 * Work that an engine gets from elsewhere is missing from its capacity. Requests are turned into utilisation by
 * Little's law: requests at the engine are proportional to the rate at which they arrive, if they take equally long.
 *
 * Its page and the reports are not of one moment, so what came and went in between makes each difference of the two as
 * uncertain as the number of requests itself. What is believed changes only when the mean of several differences is
 * off by more than that explains.
 */
export class OutsideWork {
  #readings: readonly LoadReading[] = [];
  #isKnown = false;
  #believed: OutsideView = { requests: 0, rho: 0 };
  /** What was believed before, and until when. */
  #before: { readonly view: OutsideView; readonly untilMs: number } | undefined;

  /** 0.1..1, share of the engine's capacity that is left for Wardrop. */
  get health(): number {
    return Math.max(LEAST_HEALTH, 1 - stepsOf(this.#believed.rho) * STEP);
  }

  /** What is believed; undefined before there were enough readings. */
  get view(): OutsideView | undefined {
    return this.#isKnown ? this.#believed : undefined;
  }

  /** Pages were wrong since a time: what was believed then holds, until looks say something else. */
  distrust(sinceMs: number): void {
    if (this.#before !== undefined && this.#before.untilMs > sinceMs) this.#believed = this.#before.view;
    this.#readings = [];
  }

  /** Takes one look; without looks everything stays as it is. `engine` says what its requests mean. */
  accept(reading: LoadReading, engine: RequestsMean, nowMs: number): void {
    if (rhoPerRequest(reading, engine) === undefined) return;
    this.#readings = [...this.#readings.slice(1 - LONGEST), reading];
    if (this.#readings.length < LEAST_READINGS) return;
    this.#isKnown = true;
    for (const length of WINDOWS) {
      if (length > this.#readings.length) return;
      const window = this.#readings.slice(-length);
      const outside = this.#judge(window, engine);
      if (outside === undefined) continue;
      this.#before = { view: this.#believed, untilMs: nowMs };
      this.#believed = outside;
      // Older ones are of the time before it changed.
      this.#readings = window;
      return;
    }
  }

  /** What these looks say, if it is something else than what is believed, and beyond doubt. */
  #judge(window: readonly LoadReading[], engine: RequestsMean): OutsideView | undefined {
    const means = meanOf(window);
    const perRequest = rhoPerRequest(means, engine);
    if (perRequest === undefined) return undefined;
    const requests = Math.max(0, means.requests - means.ours);
    const before = this.#believed.rho;
    const least = Math.max(LEAST_REQUESTS, LEAST_SHARE * means.requests);
    const isSome = requests >= (before > 0 ? least / 2 : least);
    const outside = isSome ? { requests, rho: Math.min(1, requests * perRequest) } : { requests: 0, rho: 0 };
    if (Math.abs(stepsOf(outside.rho) - stepsOf(before)) < DEAD_STEPS) return undefined;
    const isSure = Math.abs(outside.rho - before) > doubt(window, this.#readings) * perRequest;
    // The rest of what has ended may be too little to be sure of.
    return isSure || (!isSome && window.length === LONGEST) ? outside : undefined;
  }

  save() {
    return {
      readings: packRows(this.#readings, READING),
      isKnown: this.#isKnown,
      believed: this.#believed,
      before: this.#before,
    };
  }

  restore(saved: SavedOutsideWork): void {
    this.#readings = unpackRows(saved.readings, READING);
    this.#isKnown = saved.isKnown;
    this.#believed = saved.believed;
    this.#before = saved.before;
  }
}

type SavedOutsideWork = ReturnType<OutsideWork['save']>;

const READING = ['requests', 'ours', 'ourRho', 'replicas'] as const;

function stepsOf(rho: number): number {
  return Math.round(rho / STEP);
}

/**
 * Utilisation caused by each request; undefined when nothing can be said. Where the profile knows only a rate, a replica
 * with as many as it may have is full.
 */
function rhoPerRequest(
  reading: LoadReading,
  { profile, mix, maxInFlight }: RequestsMean,
): number | undefined {
  const { requests, ours, ourRho, replicas } = reading;
  if (replicas === 0) return undefined;
  if (ours >= ENOUGH_OURS && ourRho > 0) return ourRho / ours;
  if (requests <= ours) return 0;
  const rho = rhoOf(requests / replicas, profile, mix);
  if (rho !== undefined) return rho / requests;
  return maxInFlight === undefined ? undefined : 1 / (maxInFlight * replicas);
}

/** Requests by which the mean difference of these looks may be off with nothing from outside, at the utmost. */
function doubt(window: readonly LoadReading[], all: readonly LoadReading[]): number {
  const steps = window.length - 1;
  const { requests, ours } = meanOf(window);
  // Two readings of a number of requests that come and go by chance, however far apart: with nothing from outside, both
  // tell their mean.
  const byChance = Math.sqrt(requests + ours);
  const scatter = Math.max(byChance, deviation(differences(window)), jitter(differences(all)));
  // While the number rises or falls, the later reading is always the higher or the lower one; they are one look apart at most.
  const drift = Math.abs(window.at(-1)!.ours - window[0]!.ours) / steps;
  return (DEVIATIONS * scatter) / Math.sqrt(window.length) + drift;
}

function differences(readings: readonly LoadReading[]): readonly number[] {
  return readings.map(({ requests, ours }) => requests - ours);
}

/** Standard deviation about the mean. */
function deviation(values: readonly number[]): number {
  const middle = mean(values);
  return Math.sqrt(sum(values.map((value) => (value - middle) ** 2)) / (values.length - 1));
}

/** The same, from one value to the next: a change of the mean hardly counts. */
function jitter(values: readonly number[]): number {
  const squares = values.slice(1).map((value, at) => (value - values[at]!) ** 2);
  return Math.sqrt(sum(squares) / squares.length / 2);
}

function meanOf(readings: readonly LoadReading[]): LoadReading {
  const of = (name: keyof LoadReading) => mean(readings.map((reading) => reading[name]));
  return { requests: of('requests'), ours: of('ours'), ourRho: of('ourRho'), replicas: of('replicas') };
}
