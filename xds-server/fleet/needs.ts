import type { NeedCondition } from '../../wire/snapshot-view.js';

/** A named requirement that some requests carry and some engines meet. */
export interface Need {
  readonly id: string;
  /** When a request carries it. */
  readonly when: NeedCondition;
  /** Labels that an engine must have, each with one of these values; null when no engine may meet it. */
  readonly labels: Readonly<Record<string, readonly string[]>> | null;
}

/** Which pool serves a model to a request with certain needs. */
export interface ModelNeeds {
  readonly model: string;
  /** Ids of the needs that make a difference to the model, sorted; at most 6. */
  readonly needs: readonly string[];
  /**
   * Pool id for every combination of them, null where nobody meets it or no request can carry it. Bit i of the place
   * stands for `needs[i]`.
   */
  readonly poolIds: readonly (string | null)[];
}
