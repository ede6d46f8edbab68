import type { EngineUsage } from '../../../wire/usage-report.js';

/** Evidence is what frontends reported within this time. */
const WINDOW_MS = 3_000;
const ENOUGH_SERVED = 3;
/** A health page that is late, as all is on a busy host, is overruled by any answer. */
const ENOUGH_SERVED_LATE = 1;
const ENOUGH_FAILED = 5;
/**
 * Answers that fail after they have begun are looked at for longer, and must do so for a while: a network that resets all
 * connections at once is no fault of an engine.
 */
const CUT_WINDOW_MS = 10_000;
const ENOUGH_CUT = 5;
const LEAST_CUT_MS = 2_000;
/** Reports that come within this time are one outcome. */
const OUTCOME_MS = 250;
/** An engine that only fails is left out for this long, twice as long each time in a row, up to the limit. */
const FIRST_VETO_MS = 10_000;
const LONGEST_VETO_MS = 120_000;

/** What was reported at about the same time. */
interface Outcome {
  readonly atMs: number;
  readonly served: number;
  readonly failed: number;
  /** Answers that had begun, then fell silent, broke off or ended in an error of the engine. */
  readonly cut: number;
  /** Whether any answer came to a good end. */
  readonly endsWell: boolean;
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
  /** It was left out for answers cut short, and no answer has come to a good end since it is back. */
  #isOnTrial = false;

  /** Adds the differences of one report. */
  add(usage: EngineUsage, nowMs: number): void {
    // A 4xx is an answer of a working engine.
    const served = usage.status2xx + usage.status4xx;
    const failed = usage.failures + usage.noResponse;
    const cut = usage.stalled + usage.broken;
    const endsWell = usage.wholeCount + usage.paceTokens + usage.usageCount + usage.status4xx > 0;
    if (served + failed > 0 || endsWell) this.#note({ atMs: nowMs, served, failed, cut, endsWell });
    if (this.#veto !== undefined) return;
    if (endsWell) this.#isOnTrial = false;
    if (served > 0 && !this.#isOnTrial) this.#vetoesInARow = 0;
  }

  #note(outcome: Outcome): void {
    const last = this.#outcomes.at(-1);
    if (last === undefined || outcome.atMs - last.atMs >= OUTCOME_MS) {
      this.#outcomes.push(outcome);
      return;
    }
    this.#outcomes[this.#outcomes.length - 1] = {
      atMs: last.atMs,
      served: last.served + outcome.served,
      failed: last.failed + outcome.failed,
      cut: last.cut + outcome.cut,
      endsWell: last.endsWell || outcome.endsWell,
    };
  }

  /** Drops what was seen so far, and a veto that it led to. */
  forget(): void {
    this.#outcomes = [];
    this.#veto = undefined;
    this.#vetoesInARow = 0;
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
    this.#outcomes = this.#outcomes.filter(({ atMs }) => atMs > nowMs - CUT_WINDOW_MS);
    const { served, failed } = this.#recent(nowMs);
    const onlyFails = served === 0 && failed >= ENOUGH_FAILED;
    const cut = onlyFails ? 0 : this.#cutShort();
    if (!onlyFails && cut === 0) return undefined;
    const lasts = Math.min(LONGEST_VETO_MS, FIRST_VETO_MS * 2 ** this.#vetoesInARow);
    this.#vetoesInARow++;
    this.#isOnTrial = !onlyFails;
    this.#veto = {
      ...{ sinceMs: nowMs, untilMs: nowMs + lasts },
      ...{ failed: onlyFails ? failed : cut, cutsShort: !onlyFails },
    };
    return this.#veto;
  }

  /** Answers cut short where all are, 0 where some are not or it is not sure. */
  #cutShort(): number {
    if (this.#outcomes.some(({ endsWell }) => endsWell)) return 0;
    const cuts = this.#outcomes.filter(({ cut }) => cut > 0);
    const cut = cuts.reduce((sum, outcome) => sum + outcome.cut, 0);
    if (cut === 0 || this.#isOnTrial) return cut;
    const served = this.#outcomes.reduce((sum, outcome) => sum + outcome.served, 0);
    const lastsMs = cuts.at(-1)!.atMs - cuts[0]!.atMs;
    return cut >= ENOUGH_CUT && 2 * cut >= served && lastsMs >= LEAST_CUT_MS ? cut : 0;
  }

  #recent(nowMs: number): { served: number; failed: number } {
    const sum = { served: 0, failed: 0 };
    for (const { atMs, served, failed } of this.#outcomes) {
      if (atMs <= nowMs - WINDOW_MS) continue;
      sum.served += served;
      sum.failed += failed;
    }
    return sum;
  }

  save() {
    return {
      ...{ outcomes: [...this.#outcomes], veto: this.#veto },
      ...{ vetoesInARow: this.#vetoesInARow, isOnTrial: this.#isOnTrial },
    };
  }

  restore(saved: SavedEngineEvidence): void {
    this.#outcomes = [...saved.outcomes];
    this.#veto = saved.veto;
    this.#vetoesInARow = saved.vetoesInARow;
    this.#isOnTrial = saved.isOnTrial;
  }
}

type SavedEngineEvidence = ReturnType<EngineEvidence['save']>;
