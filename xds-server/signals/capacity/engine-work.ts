import type { EngineUsage } from '../../../wire/usage-report.js';
import type { Address, Engine } from '../../fleet/fleet.js';
import { type Profile, type TokenMix, workSeconds } from '../../profiles/profile.js';
import type { TokenSizes } from '../demand/request-sizes.js';
import { StandingPage } from '../pages/standing-page.js';
import { restoreEntries, saveEntries } from '../saved.js';
import type { UsageDelta } from '../usage/usage-ledger.js';
import { EngineTraffic } from './engine-traffic.js';
import { type LoadReading, type OutsideView, OutsideWork } from './outside-work.js';
import { RequestsHeld } from './requests-held.js';

/** Requests that an engine has answered, at least in part. */
export type AnsweredOf = (usage: EngineUsage) => number;

export function answeredByFilter({ firstTokenCount, wholeCount }: EngineUsage): number {
  return firstTokenCount + wholeCount;
}

/** Envoy counts an answer with its headers, which many engines send before they have done anything. */
export function answeredByEnvoy({ ended, failures }: EngineUsage): number {
  return Math.max(0, ended - failures);
}

/** What a report tells of the requests of one pool at one engine since `fromMs`. */
export interface ToldUsage {
  readonly engineId: string;
  readonly usage: EngineUsage;
  readonly answered: number;
  /** How large they usually are. */
  readonly shape: TokenSizes;
  readonly profile: Profile;
  /** There and back. */
  readonly networkSeconds: number;
  readonly fromMs: number;
}

/** What engines have to do and get done, by reports and by their pages, from Wardrop and from elsewhere. By engine id. */
export class EngineWork {
  readonly #traffic = new Map<string, EngineTraffic>();
  readonly #held = new Map<string, RequestsHeld>();
  readonly #outside = new Map<string, OutsideWork>();
  readonly #pages = new Map<Address, StandingPage>();

  /** Forgets all others. */
  keep(engineIds: ReadonlySet<string>, addresses: ReadonlySet<Address>): void {
    for (const known of [this.#traffic, this.#held, this.#outside]) {
      for (const id of known.keys()) if (!engineIds.has(id)) known.delete(id);
    }
    for (const address of this.#pages.keys()) if (!addresses.has(address)) this.#pages.delete(address);
  }

  /** What was counted as work of these engines until now was that of requests of other sizes. */
  forgetTraffic(engineIds: readonly string[]): void {
    for (const id of engineIds) this.#traffic.delete(id);
  }

  /** Undefined for an engine that no request was ever sent to. */
  traffic(engineId: string): EngineTraffic | undefined {
    return this.#traffic.get(engineId);
  }

  /** Undefined before anybody could tell how many requests it has. */
  held(engineId: string): RequestsHeld | undefined {
    return this.#held.get(engineId);
  }

  /** 0.1..1, share of its capacity that is left by work from elsewhere. */
  health(engineId: string): number {
    return this.#outside.get(engineId)?.health ?? 1;
  }

  /** Work from elsewhere, where anything can be said about it. */
  get outside(): ReadonlyMap<string, OutsideView> {
    return new Map(
      [...this.#outside].flatMap(([id, { view }]) => (view === undefined ? [] : [[id, view] as const])),
    );
  }

  add({ engineId, usage, answered, shape, profile, networkSeconds, fromMs }: ToldUsage, nowMs: number): void {
    const traffic = this.#traffic.get(engineId) ?? new EngineTraffic();
    this.#traffic.set(engineId, traffic);
    const work = workSeconds(profile, shape);
    const requests = usage.planned + usage.diverted;
    const uncached = uncachedPerAnswer(usage);
    // Prompts that a move has taken from their caches are more work, for a while, and no fault of the engine.
    const asAnswered =
      uncached === undefined || uncached <= shape.uncachedPromptTokens
        ? shape
        : { ...shape, uncachedPromptTokens: uncached };
    const { timedAnswers, staySeconds } = staysOf(usage, networkSeconds);
    traffic.add(
      {
        requests,
        workSeconds: requests * work,
        networkSeconds: requests * networkSeconds,
        ended: usage.ended,
        endedWorkSeconds: usage.ended * work,
        answered,
        answeredWorkSeconds: answered * work,
        coldWorkSeconds: answered * workSeconds(profile, asAnswered),
        toldAnswers: uncached === undefined ? 0 : answered,
        timedAnswers,
        staySeconds,
      },
      nowMs,
      fromMs,
    );
  }

  /** Tells pages what they should know of. */
  addEnded(
    { engines, replicas, fromMs }: UsageDelta,
    answeredOf: AnsweredOf,
    addresses: ReadonlyMap<bigint, Address>,
  ): void {
    const unanswered = new Map<bigint, number>();
    for (const usage of engines) {
      unanswered.set(usage.engine, (unanswered.get(usage.engine) ?? 0) + usage.ended - answeredOf(usage));
    }
    for (const { engine, replica, ended } of replicas) {
      const address = addresses.get(replica);
      const page = address === undefined ? undefined : this.#pages.get(address);
      page?.addEnded(ended, unanswered.get(engine) ?? 0, fromMs);
    }
  }

  /** Since when the page of a replica stands still, if it does; what followed from it since then is taken back. */
  acceptPage(
    engineId: string,
    address: Address,
    generated: number | undefined,
    nowMs: number,
  ): number | undefined {
    const page = this.#pages.get(address) ?? new StandingPage();
    this.#pages.set(address, page);
    const sinceMs = page.read(generated, nowMs);
    if (sinceMs !== undefined) this.#outside.get(engineId)?.distrust(sinceMs);
    return sinceMs;
  }

  /** Takes how many requests are under way at engines that were ever sent any. */
  noteHeld(engines: readonly Engine[], inFlight: (engine: Engine) => number, nowMs: number): void {
    for (const engine of engines) {
      if (!this.#traffic.has(engine.id)) continue;
      const held = this.#held.get(engine.id) ?? new RequestsHeld();
      this.#held.set(engine.id, held);
      held.add(inFlight(engine), nowMs);
    }
  }

  /** Compares what an engine says that it has with what it should have. `share`: of its profile's capacity that it has. */
  acceptLoad(
    { id, maxInFlight }: Engine,
    { requests, ours, replicas }: Omit<LoadReading, 'ourRho'>,
    share: number,
    profile: Profile,
    mix: TokenMix,
    nowMs: number,
  ): void {
    const outside = this.#outside.get(id) ?? new OutsideWork();
    this.#outside.set(id, outside);
    const workPerSecond = this.#traffic.get(id)?.rates(nowMs).workSeconds ?? 0;
    const ourRho = replicas === 0 ? 0 : workPerSecond / (replicas * share);
    outside.accept({ requests, ours, ourRho, replicas }, { profile, mix, maxInFlight }, nowMs);
  }

  save() {
    return {
      traffic: saveEntries(this.#traffic),
      held: saveEntries(this.#held),
      outside: saveEntries(this.#outside),
      pages: saveEntries(this.#pages),
    };
  }

  restore(saved: SavedEngineWork): void {
    restoreEntries(this.#traffic, saved.traffic, () => new EngineTraffic());
    restoreEntries(this.#held, saved.held, () => new RequestsHeld());
    restoreEntries(this.#outside, saved.outside, () => new OutsideWork());
    restoreEntries(this.#pages, saved.pages, () => new StandingPage());
  }
}

type SavedEngineWork = ReturnType<EngineWork['save']>;

/** Prompt tokens per answer that were in no cache; undefined when answers do not tell. */
function uncachedPerAnswer(usage: EngineUsage): number | undefined {
  const { usageCount, promptTokens, cachedTokens, cachedOfTokens } = usage;
  if (usageCount === 0 || cachedOfTokens === 0) return undefined;
  return (promptTokens / usageCount) * (1 - cachedTokens / cachedOfTokens);
}

/** Answers whose times are told, and the seconds that they spent in the engine: streams until they end, too. */
function staysOf(
  { firstTokenCount, firstTokenSecondsSum, paceSecondsSum, wholeCount, wholeSecondsSum }: EngineUsage,
  networkSeconds: number,
): { readonly timedAnswers: number; readonly staySeconds: number } {
  const timedAnswers = firstTokenCount + wholeCount;
  const seconds = firstTokenSecondsSum + paceSecondsSum + wholeSecondsSum;
  return { timedAnswers, staySeconds: Math.max(0, seconds - timedAnswers * networkSeconds) };
}
