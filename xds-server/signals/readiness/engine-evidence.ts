import type { EngineUsage } from '../../../wire/usage-report.js';

/** Evidence is what frontends reported within this time. */
const WINDOW_MS = 3_000;
const ENOUGH_SERVED = 3;
/** A health page that is late, as all is on a busy host, is overruled by any answer. */
const ENOUGH_SERVED_LATE = 1;
const ENOUGH_FAILED = 5;
/** An engine that only fails is left out for this long, twice as long each time in a row, up to the limit. */
const FIRST_VETO_MS = 10_000;
const LONGEST_VETO_MS = 120_000;

interface Outcome {
  readonly atMs: number;
  readonly served: number;
  readonly failed: number;
}

export interface Veto {
  readonly sinceMs: number;
  readonly untilMs: number;
  /** Failures that led to it. */
  readonly failed: number;
}

/** What frontends saw of one engine, whatever its health page says. */
export class EngineEvidence {
  #outcomes: Outcome[] = [];
  #veto: Veto | undefined;
  #vetoesInARow = 0;

  /** Adds the differences of one report. */
  add(usage: EngineUsage, nowMs: number): void {
    // A 4xx is an answer of a working engine.
    const served = usage.status2xx + usage.status4xx;
    const failed = usage.failures + usage.noResponse;
    if (served + failed > 0) this.#outcomes.push({ atMs: nowMs, served, failed });
    if (served > 0 && this.#veto === undefined) this.#vetoesInARow = 0;
  }

  /** Drops what was seen so far, and a veto that it led to. */
  forget(): void {
    this.#outcomes = [];
    this.#veto = undefined;
    this.#vetoesInARow = 0;
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
    const { served, failed } = this.#recent(nowMs);
    if (served > 0 || failed < ENOUGH_FAILED) return undefined;
    const lasts = Math.min(LONGEST_VETO_MS, FIRST_VETO_MS * 2 ** this.#vetoesInARow);
    this.#vetoesInARow++;
    this.#veto = { sinceMs: nowMs, untilMs: nowMs + lasts, failed };
    return this.#veto;
  }

  #recent(nowMs: number): { served: number; failed: number } {
    this.#outcomes = this.#outcomes.filter(({ atMs }) => atMs > nowMs - WINDOW_MS);
    return this.#outcomes.reduce(
      (sum, { served, failed }) => ({ served: sum.served + served, failed: sum.failed + failed }),
      { served: 0, failed: 0 },
    );
  }

  save() {
    return { outcomes: [...this.#outcomes], veto: this.#veto, vetoesInARow: this.#vetoesInARow };
  }

  restore(saved: SavedEngineEvidence): void {
    this.#outcomes = [...saved.outcomes];
    this.#veto = saved.veto;
    this.#vetoesInARow = saved.vetoesInARow;
  }
}

type SavedEngineEvidence = ReturnType<EngineEvidence['save']>;
