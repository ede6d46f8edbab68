/** Single figures of a run; those that do not apply are null. */
export interface Figures {
  readonly requests: number;
  readonly meanE2eMs: number;
  readonly p50E2eMs: number;
  readonly p90E2eMs: number;
  readonly p99E2eMs: number;
  readonly p999E2eMs: number;
  readonly meanTtftMs: number;
  readonly p50TtftMs: number;
  readonly p90TtftMs: number;
  readonly p99TtftMs: number;
  readonly p999TtftMs: number;
  readonly meanTbotMs: number;
  readonly p99TbotMs: number;
  /** 0..1, share of the requests that were served within the SLO. */
  readonly goodput: number;
  /** Such requests per second. */
  readonly goodputRps: number;
  readonly cacheHitShare: number;
  readonly cacheHitTokens: number;
  /** 0..1, follow-ups that were served elsewhere than the turn before. */
  readonly movedShare: number;
  /** Moved follow-ups per total variation of the weights between the two turns; null where weights stood still. */
  readonly movesPerTv: number | null;
  /** Total variation of the weights, mean over frontends, once the scenario has settled. */
  readonly tvPerMinute: number | null;
  /** Largest swing of a weight between two turning points, 0..1; swings within the dead band are none. */
  readonly amplitude: number;
  /** Turning points per hour, over all weights of all frontends. */
  readonly reversals: number;
  /** From the last outside change until no weight is further from where it ends than the dead band. */
  readonly settlingSeconds: number | null;
  readonly shedShare: number;
  readonly failedShare: number;
  /** Further tries of clients. */
  readonly clientRetriesPerRequest: number;
  /** Further engines that frontends tried. */
  readonly failoversPerRequest: number;
  /** Largest over smallest mean time to the answer of a frontend. */
  readonly frontendSpread: number;
  /** Work of the requests that the busiest engine was sent, over what it can do as its benchmark says. */
  readonly peakLoad: number;
  /** 1 if a profile was taken for wrong; null for policies without profiles. */
  readonly driftDetected: number | null;
}

/** Figures that are told of each class, too. */
export const CLASS_MEASURES = ['meanE2eMs', 'p99E2eMs', 'goodput', 'shedShare', 'failedShare'] as const;

/** NaN where a class had no requests. */
export type ClassFigures = Pick<Figures, (typeof CLASS_MEASURES)[number]>;

/** What one run showed. */
export interface Measures extends Figures {
  /** Weights as set, or shares of the requests where a policy has none. */
  readonly basis: 'weights' | 'flows';
  /** By id of a class; `all` where there are none. */
  readonly byClass: Readonly<Record<string, ClassFigures>>;
  /** Work of the requests that it was sent over what it can do, by replica. */
  readonly loadByEngine: Readonly<Record<string, number>>;
}

/** Figures by name, each with the digits that are worth printing. */
export const FIGURE_DIGITS: Readonly<Record<keyof Figures, number>> = {
  meanE2eMs: 1,
  p99E2eMs: 1,
  p50TtftMs: 1,
  p99TtftMs: 1,
  goodput: 5,
  cacheHitShare: 5,
  movesPerTv: 3,
  amplitude: 4,
  reversals: 1,
  shedShare: 5,
  p50E2eMs: 1,
  p90E2eMs: 1,
  p999E2eMs: 1,
  meanTtftMs: 1,
  p90TtftMs: 1,
  p999TtftMs: 1,
  meanTbotMs: 2,
  p99TbotMs: 2,
  goodputRps: 2,
  cacheHitTokens: 0,
  movedShare: 5,
  tvPerMinute: 4,
  settlingSeconds: 0,
  failedShare: 5,
  clientRetriesPerRequest: 5,
  failoversPerRequest: 5,
  frontendSpread: 3,
  peakLoad: 3,
  driftDetected: 0,
  requests: 0,
};

export const MEASURE_NAMES = Object.keys(FIGURE_DIGITS) as readonly (keyof Figures)[];
