/**
 * One stage of a benchmark: requests sent at a steady rate (or a fixed concurrency), and what was measured. Rates and
 * the concurrency limit are those of one replica.
 */
export interface Observation {
  /** Where it was read: `file`, `file:line` or `file[index]`. */
  readonly place: string;
  /** Requests per second the client meant to send; Infinity when it sent without pacing. */
  readonly offeredRps: number;
  /** Successful requests over the whole stage, the drain after the last send included, as all readers' tools do it. */
  readonly completedRps: number;
  readonly ttftSeconds: number;
  /** As reported; undefined when answers have a single token. */
  readonly reportedTbotSeconds: number | undefined;
  /** Request sent to last token. */
  readonly e2eSeconds: number | undefined;
  /** What the three times are; medians only where the file has no means. */
  readonly statistic: 'mean' | 'median';
  readonly promptTokens: number;
  /** Prompt tokens that were not in a cache; all of them unless the file says otherwise. */
  readonly uncachedPromptTokens: number;
  readonly outputTokens: number;
  /** First send to last answer. */
  readonly durationSeconds: number | undefined;
  /** Successful requests in the stage. */
  readonly requests: number | undefined;
  /** Requests the client allows in flight. */
  readonly concurrencyLimit: number | undefined;
  /** The file itself says that the stage was overloaded. */
  readonly flaggedOverload: boolean;
}

/** The same stage seen from one of `replicas` equal replicas that shared its load. */
export function perReplica(observation: Observation, replicas: number): Observation {
  const { requests, concurrencyLimit } = observation;
  return {
    ...observation,
    offeredRps: observation.offeredRps / replicas,
    completedRps: observation.completedRps / replicas,
    requests: requests === undefined ? undefined : requests / replicas,
    concurrencyLimit: concurrencyLimit === undefined ? undefined : concurrencyLimit / replicas,
  };
}
