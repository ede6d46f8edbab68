import type { Decision } from '../../../wire/decision.js';
import type { FilterConfig } from '../../../wire/filter-config.js';

/** A request as a client sends it. */
export interface ClientRequest {
  readonly method: string;
  readonly path: string;
  /** Names in lower case. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Empty when there is none. */
  readonly body: Uint8Array;
}

/** What the filter made of a request. */
export interface FilterOutcome {
  /** Of the response, as `x-wardrop` tells it. */
  readonly decision: Decision;
  /** Headers of the request as it goes on; of one that does not, as it came. */
  readonly requestHeaders: ReadonlyMap<string, string>;
  /** The answer that the filter gives itself. */
  readonly reply?: { readonly status: number; readonly body: string };
}

/** Runs the compiled filter once, in a host without any other request; throws when it refuses its snapshot. */
export type FilterRun = (filter: FilterConfig, snapshot: Uint8Array, request: ClientRequest) => FilterOutcome;
