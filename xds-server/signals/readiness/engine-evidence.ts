import type { EngineUsage } from '../../../wire/usage-report.js';

/** Evidence is what frontends reported within this time. */
const WINDOW_MS = 3_000;
const ENOUGH_SERVED = 3;
/** A health page that is late, as all is on a busy host, is overruled by any answer. */
const ENOUGH_SERVED_LATE = 1;
const ENOUGH_FAILED = 5;
/** Failures without an answer between them count for so long: filters that avoid the engine test it with one request in up to 30 s. */
const ROW_MS = 30_000;
/**
 * So many answers in a row must fail after they have begun, and for so long: a network that resets all connections at once
 * is no fault of an engine.
 */
const ENOUGH_CUT = 5;
const LEAST_CUT_MS = 2_000;
/** An engine that only fails is left out for this long, twice as long each time in a row, up to the limit. */
const FIRST_VETO_MS = 10_000;
const LONGEST_VETO_MS = 120_000;

interface Outcome {
  readonly atMs: number;
  readonly served: number;
  readonly failed: number;
}

/** Answers in a row that had begun, then fell silent, broke off or ended in an error of the engine. */
interface Cuts {
  readonly sinceMs: number;
  readonly lastMs: number;
  readonly count: number;
  /** Answers that have begun since, or since the engine is on trial. */
  readonly served: number;
}

export interface Veto {
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Failures that led to it. */
  readonly failed: number;
  /** Whether they are of answers that had begun. */
  readonly cutsShort: boolean;
}

/** What frontends saw of one engine, whatever its health page says. */
export class EngineEvidence {
  #outcomes: Outcome[] = [];
  #veto: Veto | undefined;
  #vetoesInARow = 0;
  #cuts: Cuts | undefined;
  /** It was left out for answers cut short, and none is known to have come to a good end since it is back. */
  #isOnTrial = false;

  /** Adds the differences of one report. */
  add(usage: EngineUsage, nowMs: number): void {
    // A 4xx is an answer of a working engine.
    const served = usage.status2xx + usage.status4xx;
    const failed = usage.failures + usage.noResponse;
    if (served + failed > 0) this.#outcomes.push({ atMs: nowMs, served, failed });
    if (this.#veto !== undefined) return;
    this.#noteEnds(usage, served, nowMs);
    if (served > 0 && !this.#isOnTrial) this.#vetoesInARow = 0;
  }

  #noteEnds(usage: EngineUsage, served: number, nowMs: number): void {
    const cut = usage.stalled + usage.broken;
    // What ended well may have done so before those that a report tells beside it: an engine that has begun to fail gets few others.
    if (usage.wholeCount + usage.paceTokens + usage.usageCount + usage.status4xx > 0) {
      this.#cuts = undefined;
      this.#isOnTrial = false;
    }
    const before = this.#cuts;
    if (cut > 0 || before !== undefined || this.#isOnTrial) {
      this.#cuts = {
        sinceMs: before?.sinceMs ?? nowMs,
        lastMs: cut > 0 || before === undefined ? nowMs : before.lastMs,
        count: (before?.count ?? 0) + cut,
        // What a report tells beside the first of them may have begun, and ended, before.
        served: before === undefined && !this.#isOnTrial ? 0 : (before?.served ?? 0) + served,
      };
    }
  }

  /** Drops what was seen so far, and a veto that it led to. */
  forget(): void {
    this.#outcomes = [];
    this.#veto = undefined;
    this.#vetoesInARow = 0;
    this.#cuts = undefined;
    this.#isOnTrial = false;
  }

  /** Answers and no failures: a reason to doubt a health page that fails, or is only late. */
  servesWell(nowMs: number, isLate = false): boolean {
    const { served, failed } = this.#recent(nowMs);
    return served >= (isLate ? ENOUGH_SERVED_LATE : ENOUGH_SERVED) && failed === 0;
  }

  /** The veto in force; nothing but failures starts one, whatever the health page says. */
  veto(nowMs: number): Veto | undefined {
    if (this.#veto !== undefined) {
      if (nowMs < this.#veto.untilMs) return this.#veto;
      this.#veto = undefined;
      this.#outcomes = [];
    }
    const failed = this.#failedInARow(nowMs);
    if (failed >= (this.#isBack() ? 1 : ENOUGH_FAILED)) return this.#leaveOut(failed, false, nowMs);
    const cut = this.#cutShort();
    return cut > 0 ? this.#leaveOut(cut, true, nowMs) : undefined;
  }

  /** Whether it was left out for failures, and has answered nobody since. */
  #isBack(): boolean {
    return this.#vetoesInARow > 0 && !this.#isOnTrial;
  }

  /** Failures since the last answer; 0 where that is recent. */
  #failedInARow(nowMs: number): number {
    if (this.#recent(nowMs).served > 0) return 0;
    return this.#outcomes.reduce((sum, { failed }) => sum + failed, 0);
  }

  /** Answers cut short where all are, 0 where it is not sure. */
  #cutShort(): number {
    if (this.#cuts === undefined) return 0;
    const { sinceMs, lastMs, count, served } = this.#cuts;
    const isSure = this.#isOnTrial || (count >= ENOUGH_CUT && lastMs - sinceMs >= LEAST_CUT_MS);
    return isSure && 2 * count >= served ? count : 0;
  }

  #leaveOut(failed: number, cutsShort: boolean, nowMs: number): Veto {
    const lasts = Math.min(LONGEST_VETO_MS, FIRST_VETO_MS * 2 ** this.#vetoesInARow);
    this.#vetoesInARow++;
    this.#cuts = undefined;
    this.#isOnTrial = cutsShort;
    this.#veto = { sinceMs: nowMs, untilMs: nowMs + lasts, failed, cutsShort };
    return this.#veto;
  }

  #recent(nowMs: number): { served: number; failed: number } {
    const last = this.#outcomes.findLastIndex(({ served }) => served > 0);
    // Of what is older only failures in a row count, which are few before they lead to a veto.
    const rowMs = this.#veto === undefined ? ROW_MS : WINDOW_MS;
    this.#outcomes = this.#outcomes.filter(({ atMs }, at) => atMs > nowMs - (at > last ? rowMs : WINDOW_MS));
    const recent = this.#outcomes.filter(({ atMs }) => atMs > nowMs - WINDOW_MS);
    return recent.reduce(
      (sum, { served, failed }) => ({ served: sum.served + served, failed: sum.failed + failed }),
      { served: 0, failed: 0 },
    );
  }

  save() {
    return {
      ...{ outcomes: [...this.#outcomes], veto: this.#veto, vetoesInARow: this.#vetoesInARow },
      ...{ cuts: this.#cuts, isOnTrial: this.#isOnTrial },
    };
  }

  restore(saved: SavedEngineEvidence): void {
    this.#outcomes = [...saved.outcomes];
    this.#veto = saved.veto;
    this.#vetoesInARow = saved.vetoesInARow;
    this.#cuts = saved.cuts;
    this.#isOnTrial = saved.isOnTrial;
  }
}

export type SavedEngineEvidence = ReturnType<EngineEvidence['save']>;
