import type { Profile, TokenMix } from '../../xds-server/profiles/profile.js';
import { workSeconds } from '../../xds-server/profiles/profile.js';
import type { EngineParameters } from './parameters.js';

/** A batch that is neither so small that no request finds company nor beyond what the largest engines of many cards run. */
const LEAST_RUNNING = 4;
const MOST_RUNNING = 4096;
const LEAST_BATCH_TOKENS = 2048;
/** Memory for keys and values: this many times what a full batch of the mix holds. */
const MEMORY = 8;
const BLOCK_TOKENS = 16;

/**
 * An engine that behaves as a profile says of requests like these: a step without load takes as long as the profile's
 * time between tokens; the batch is as large as it must be for the profile's time between tokens at full load to let
 * through what its work model says; prompts cost what they cost there. It has room for the largest request.
 */
export function engineOf(
  profile: Profile,
  mix: TokenMix & { readonly promptTokens: number },
  largestTokens: number,
): EngineParameters {
  const { work, tbot } = profile;
  const outputTokens = Math.max(1, mix.outputTokens);
  const perRequest = workSeconds(profile, mix);
  // A profile that knows a rate only has no time between tokens.
  const idle = tbot.baseSeconds > 0 ? tbot.baseSeconds : perRequest / outputTokens;
  const full = idle / (1 - tbot.kappa);
  const running = Math.round(
    Math.min(MOST_RUNNING, Math.max(LEAST_RUNNING, (full * outputTokens) / perRequest)),
  );
  const perPrompt = work.secondsPerUncachedPromptToken * mix.uncachedPromptTokens;
  // What a step takes beyond its base, for each sequence in a full batch, without its share of prompts.
  const perSequence = Math.max(0, (perRequest - perPrompt) / outputTokens - idle / running);
  // Of each sequence at full load: one of its answer, and its share of prompts, which come at twice that pace at times.
  const tokensPerStep = 1 + mix.uncachedPromptTokens / outputTokens;
  const tokens = mix.promptTokens + outputTokens;
  const maxModelTokens = Math.max(8192, Math.ceil(32 * tokens), largestTokens);
  return {
    stepBaseSeconds: idle,
    secondsPerSequence: perSequence,
    secondsPerContextToken: 0,
    secondsPerBatchToken: work.secondsPerUncachedPromptToken,
    freeBatchTokens: running,
    maxRunning: running,
    maxBatchTokens: Math.max(LEAST_BATCH_TOKENS, Math.ceil(2 * running * tokensPerStep)),
    maxWaiting: 4 * running,
    kvBlocks: Math.ceil(Math.max(MEMORY * running * tokens, maxModelTokens) / BLOCK_TOKENS),
    blockTokens: BLOCK_TOKENS,
    maxModelTokens,
  };
}
