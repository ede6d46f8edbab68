import { isDeepStrictEqual } from 'node:util';
import type { Known, LiveState, PeerNews, PoolReach, ToldReport } from './peer-news.js';

/** Reports that are older than this are no news to anybody. */
const OLD_MS = 10_000;

/** What is told whenever any of it has changed. */
interface Live {
  readonly live: LiveState;
  readonly configured: readonly string[];
  readonly pools: PoolReach;
}

interface Row {
  readonly report: ToldReport;
  readonly number: number;
  readonly atMs: number;
}

/**
 * What this server has to tell its peers, each of which asks for what is newer than what it knows. Of a node only the latest
 * report is kept: it holds all that was counted before, so that one that is lost, comes twice or comes late does no harm.
 */
export class PeerBoard {
  readonly #instance: string;
  readonly #now: () => number;
  readonly #reports = new Map<string, Row>();
  readonly #waiting = new Set<() => void>();
  #lastReport = 0;
  #state = { number: 0, text: '' };
  #live: { readonly number: number; readonly value: Live } | undefined;

  constructor(instance: string, now: () => number) {
    this.#instance = instance;
    this.#now = now;
  }

  /** Only of Envoys that call this server themselves. */
  addReport(report: ToldReport): void {
    const key = `${report.kind} ${report.frontendId} ${report.nodeId}`;
    // In the order of their numbers.
    this.#reports.delete(key);
    this.#reports.set(key, { report, number: ++this.#lastReport, atMs: this.#now() });
    this.#forget();
    this.#wake();
  }

  setState(text: string): void {
    if (text === this.#state.text) return;
    this.#state = { number: this.#state.number + 1, text };
    this.#wake();
  }

  setLive(value: Live): void {
    const before = this.#live;
    if (before !== undefined && isDeepStrictEqual(before.value, value)) return;
    this.#live = { number: (before?.number ?? 0) + 1, value };
    this.#wake();
  }

  /** Resolves when there is something that is not known, after `timeoutMs` at the latest. */
  async news(known: Known, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (this.#hasNews(known) || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const finish = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', finish);
        this.#waiting.delete(finish);
        resolve();
      };
      const timer = setTimeout(finish, timeoutMs);
      signal.addEventListener('abort', finish);
      this.#waiting.add(finish);
    });
  }

  after(known: Known): Pick<PeerNews, 'known' | 'reports' | 'state' | 'live' | 'configured' | 'pools'> {
    const { reports, state, live } = this.#own(known);
    this.#forget();
    const told = [...this.#reports.values()].filter(({ number }) => number > reports);
    return {
      known: {
        instance: this.#instance,
        reports: this.#lastReport,
        state: this.#state.number,
        live: this.#live?.number ?? 0,
      },
      reports: told.map(({ report }) => report),
      ...(this.#state.number !== state && { state: this.#state.text }),
      ...(this.#live !== undefined && this.#live.number !== live && this.#live.value),
    };
  }

  #hasNews(known: Known): boolean {
    const { reports, state, live } = this.#own(known);
    return reports < this.#lastReport || state !== this.#state.number || live !== (this.#live?.number ?? 0);
  }

  /** Of another process nothing is known. */
  #own(known: Known): Known {
    return known.instance === this.#instance ? known : NOTHING_KNOWN;
  }

  #forget(): void {
    const sinceMs = this.#now() - OLD_MS;
    for (const [key, { atMs }] of this.#reports) {
      if (atMs >= sinceMs) return;
      this.#reports.delete(key);
    }
  }

  #wake(): void {
    for (const finish of [...this.#waiting]) finish();
  }
}

export const NOTHING_KNOWN: Known = { instance: '', reports: 0, state: 0, live: 0 };
