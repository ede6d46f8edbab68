/** What the operator decides about all plans. */
export interface Policy {
  /** Utilisation above which cost rises steeply; 0..1. Default 0.9. */
  readonly targetUtilization: number;
  /** Utilisation that no plan exceeds; above it demand is shed. 0..1. Default 1. */
  readonly maxUtilization: number;
  readonly retries: RetryPolicy;
  /** Operator bounds on weights; always shown as such in explanations. */
  readonly bounds: readonly WeightBound[];
  /** Least share of each class that is served whatever its priority, by pool and priority; default none. */
  readonly minShares: readonly MinShare[];
  /** Seconds of user latency that one dollar of egress is worth; 0 (the default) ignores egress. */
  readonly egressSecondsPerDollar: number;
}

/** Retries earned per first attempt: `max` while there is room, falling linearly to `min` as rho nears full. */
export interface RetryPolicy {
  readonly max: number;
  readonly min: number;
}

/** `min <= weight <= max` for one (frontend, pool, engine); a pin has both equal. */
export interface WeightBound {
  readonly frontendId: string;
  readonly poolId: string;
  readonly engineId: string;
  readonly min: number;
  readonly max: number;
}

export interface MinShare {
  readonly poolId: string;
  readonly priority: number;
  readonly share: number;
}
