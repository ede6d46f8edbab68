import type { NetworkUsage } from '../../../wire/usage-report.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { MeasuredRoundTrip } from '../../fleet/operations.js';
import { LEAST_SAMPLES, RoundTrip, type RoundTripView } from './round-trip.js';

/** Time between two looks at what was measured. */
const INTERVAL_MS = 1_000;

/** Round trips between frontends and engines: configured ones, corrected by what filters measure. */
export class Network {
  /** By frontend, then engine. */
  #pairs: ReadonlyMap<string, ReadonlyMap<string, RoundTrip>> = new Map();
  /** The same pairs, and what is known of them, by frontend and engine of the fleet, in its order. */
  #rows: readonly (readonly RoundTrip[])[] = [];
  #views: readonly (readonly RoundTripView[])[] = [];
  #fleet: Fleet;
  #evaluatedMs = Number.NEGATIVE_INFINITY;

  constructor(fleet: Fleet) {
    this.#fleet = fleet;
    this.reconfigure(fleet);
  }

  /** Takes a new fleet; what was measured of pairs that stay is kept, unless nothing is to be measured any more. */
  reconfigure(fleet: Fleet): void {
    const before = fleet.measuresNetwork === true ? this.#pairs : undefined;
    this.#pairs = new Map(
      fleet.frontends.map(({ id: frontendId }, frontend) => [
        frontendId,
        new Map(
          fleet.engines.map(({ id: engineId }, engine) => [
            engineId,
            pairOf(fleet.networkSeconds[frontend]![engine]!, before?.get(frontendId)?.get(engineId)),
          ]),
        ),
      ]),
    );
    this.#rows = [...this.#pairs.values()].map((row) => [...row.values()]);
    this.#fleet = fleet;
    this.#take(this.#rows.map((row) => row.map((pair) => pair.view)));
    this.#evaluatedMs = Number.NEGATIVE_INFINITY;
  }

  add(frontendId: string, engineId: string, usage: NetworkUsage, nowMs: number): void {
    if (usage.roundTripCount === 0 || this.#fleet.measuresNetwork !== true) return;
    this.#pairs
      .get(frontendId)
      ?.get(engineId)
      ?.add(usage.roundTripSecondsSum / usage.roundTripCount, usage.roundTripCount, nowMs);
  }

  /** What is measured now, to go on with after a restart. */
  get measured(): readonly MeasuredRoundTrip[] {
    return this.#fleet.frontends.flatMap(({ id: frontendId }, frontend) =>
      this.#fleet.engines.flatMap(({ id: engineId }, engine) => {
        const { measured } = this.#views[frontend]![engine]!;
        return measured === undefined
          ? []
          : [{ frontendId, engineId, seconds: measured.seconds, atMs: measured.atMs }];
      }),
    );
  }

  /** Goes on with what was measured before a restart, maybe by a clock that was ahead. */
  resume(measured: readonly MeasuredRoundTrip[], nowMs: number): void {
    this.#evaluatedMs = Number.NEGATIVE_INFINITY;
    if (this.#fleet.measuresNetwork !== true) return;
    for (const { frontendId, engineId, seconds, atMs } of measured) {
      this.#pairs.get(frontendId)?.get(engineId)?.add(seconds, LEAST_SAMPLES, Math.min(atMs, nowMs));
    }
  }

  /** The round trip in force; Infinity for an engine that cannot be reached. */
  seconds(frontendId: string, engineId: string): number {
    return this.#pairs.get(frontendId)!.get(engineId)!.seconds;
  }

  /** What is configured where something else is in force. */
  corrected(frontendId: string, engineId: string): number | undefined {
    const pair = this.#pairs.get(frontendId)?.get(engineId);
    return pair === undefined || pair.seconds === pair.configuredSeconds ? undefined : pair.configuredSeconds;
  }

  /** By frontend and engine of the fleet, in its order. */
  get views(): readonly (readonly RoundTripView[])[] {
    return this.#views;
  }

  /** The fleet with the round trips that hold now; the same object while none changes. */
  evaluate(nowMs: number): Fleet {
    if (Math.abs(nowMs - this.#evaluatedMs) < INTERVAL_MS) return this.#fleet;
    this.#evaluatedMs = nowMs;
    this.#take(this.#rows.map((row) => row.map((pair) => pair.evaluate(nowMs))));
    return this.#fleet;
  }

  /** Has the fleet go by what is known of round trips now. */
  #take(views: readonly (readonly RoundTripView[])[]): void {
    this.#views = views;
    const isAsBefore = this.#views.every((row, frontend) =>
      row.every(({ seconds }, engine) => seconds === this.#fleet.networkSeconds[frontend]![engine]),
    );
    if (!isAsBefore) {
      const networkSeconds = this.#views.map((row) => row.map(({ seconds }) => seconds));
      this.#fleet = { ...this.#fleet, networkSeconds };
    }
  }

  /** By indices of frontends and engines; pairs that were never measured are left out. */
  save() {
    const pairs = this.#rows.flatMap((row, frontend) =>
      row.flatMap((pair, engine) => (pair.wasMeasured ? [[frontend, engine, pair.save()] as const] : [])),
    );
    return { pairs, evaluatedMs: this.#evaluatedMs };
  }

  /** Of the same fleet. */
  restore({ pairs, evaluatedMs }: SavedNetwork): void {
    for (const [frontend, engine, pair] of pairs) this.#rows[frontend]![engine]!.restore(pair);
    this.#take(this.#rows.map((row) => row.map((pair) => pair.view)));
    this.#evaluatedMs = evaluatedMs;
  }
}

type SavedNetwork = ReturnType<Network['save']>;

function pairOf(configuredSeconds: number, before: RoundTrip | undefined): RoundTrip {
  if (before?.configuredSeconds === configuredSeconds) return before;
  const pair = new RoundTrip(configuredSeconds);
  if (before !== undefined) pair.inherit(before);
  return pair;
}
