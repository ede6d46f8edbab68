/**
 * Latency and work of one engine kind. `rho` is utilisation: work arriving per second over effective capacity.
 * Form of the curves: facts of queueing (TTFT carries the queue and diverges) and of iteration-level batching
 * (TBOT grows with the batch, which an engine caps, so it stays finite).
 */
export interface Profile {
  readonly id: string;
  readonly work: WorkModel;
  readonly ttft: TtftCurve;
  readonly tbot: TbotCurve;
  /** The curves were fitted for utilisations from 0 to this one; at most 1. */
  readonly maxFittedRho: number;
}

/** Replica-seconds one request costs: `perRequest + perPromptToken * uncached + perOutputToken * output`. */
export interface WorkModel {
  readonly secondsPerRequest: number;
  readonly secondsPerUncachedPromptToken: number;
  readonly secondsPerOutputToken: number;
}

/** TTFT(rho) = baseSeconds + secondsPerUncachedPromptToken * uncached + queueSeconds * rho / (1 - rho). */
export interface TtftCurve {
  readonly baseSeconds: number;
  readonly secondsPerUncachedPromptToken: number;
  readonly queueSeconds: number;
}

/** TBOT(rho) = baseSeconds / (1 - kappa * rho), 0 <= kappa < 1. */
export interface TbotCurve {
  readonly baseSeconds: number;
  readonly kappa: number;
}

export interface TokenMix {
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
}

/** Replica-seconds of work for one request of this size. */
export function workSeconds(profile: Pick<Profile, 'work'>, mix: TokenMix): number {
  const { work } = profile;
  return (
    work.secondsPerRequest +
    work.secondsPerUncachedPromptToken * mix.uncachedPromptTokens +
    work.secondsPerOutputToken * mix.outputTokens
  );
}
