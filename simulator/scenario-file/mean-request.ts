import type { RequestMeans } from '../workloads/recorded.js';

/** So many requests with such means. */
export interface WeighedMeans {
  readonly requestsPerSecond: number;
  readonly means: RequestMeans;
}

/** Means over all requests; over all parts alike where nobody asks for anything. */
export function meanRequest(parts: readonly WeighedMeans[]): RequestMeans {
  const total = parts.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0);
  const mean = (name: keyof RequestMeans) =>
    total === 0
      ? parts.reduce((sum, { means }) => sum + means[name], 0) / parts.length
      : parts.reduce((sum, { means, requestsPerSecond }) => sum + means[name] * requestsPerSecond, 0) / total;
  return {
    promptTokens: mean('promptTokens'),
    uncachedPromptTokens: mean('uncachedPromptTokens'),
    outputTokens: mean('outputTokens'),
    followUpShare: mean('followUpShare'),
    turnGapSeconds: mean('turnGapSeconds'),
  };
}
