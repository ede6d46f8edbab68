import type { TbotCurve, TtftCurve } from '../profile.js';
import { fitNonNegative } from './regression.js';

/**
 * The curves are regressions of two forms with few, non-negative coefficients:
 *
 *     TTFT(rho) = a + c * uncached + b * rho / (1 - rho)      a wait that diverges as the queue does
 *     TBOT(rho) = base / (1 - kappa * rho),  0 <= kappa < 1   a batch that grows but that the engine caps
 *
 * They are separate because at capacity TBOT is finite while TTFT is not. With rho times the queueing delay they give
 * `b * rho^2 / (1 - rho)` and `base * kappa * rho^2 / (1 - kappa * rho)`; the second derivatives,
 * `2 b / (1 - rho)^3` and `2 base kappa / (1 - kappa rho)^3`, are never negative. So the cost that an optimizer
 * minimises is convex whatever the data, which a free-form curve would not ensure: measured TTFT can be concave.
 */
export interface CurvePoint {
  /** Utilisation, 0 or more. */
  readonly rho: number;
  readonly uncachedPromptTokens: number;
  /** What was measured. */
  readonly seconds: number;
}

/** Two coefficients and one stage that could contradict them. */
export const minStages = 3;

/** kappa stays below 1, so that TBOT stays finite at rho = 1. */
const maxKappa = 0.99;

/** Points must have rho < 1. The prompt's own term is fitted only when `perPromptToken`. */
export function fitTtft(points: readonly CurvePoint[], perPromptToken: boolean): TtftCurve {
  const [baseSeconds, queueSeconds, secondsPerUncachedPromptToken] = fitNonNegative(
    points.map(({ rho, uncachedPromptTokens, seconds }) => {
      const terms = [1, rho / (1 - rho), ...(perPromptToken ? [uncachedPromptTokens] : [])];
      return { row: terms.map((term) => term / seconds), target: 1 };
    }),
  );
  return {
    baseSeconds: baseSeconds!,
    secondsPerUncachedPromptToken: secondsPerUncachedPromptToken ?? 0,
    queueSeconds: queueSeconds!,
  };
}

/**
 * Linear in 1 / base and kappa / base: measured / curve = measured * (1/base - kappa/base * rho). `bounded` tells that
 * the data wanted kappa above its bound.
 */
export function fitTbot(points: readonly CurvePoint[]): { curve: TbotCurve; bounded: boolean } {
  // Coefficients of a non-negative regression, with (1 - rho) in place of 1 so that kappa < 1 is its natural bound:
  // 1/base - kappa/base * rho  =  p + q * (1 - rho),  p = (1 - kappa)/base,  q = kappa/base.
  const [p, q] = fitNonNegative(
    points.map(({ rho, seconds }) => ({ row: [seconds, seconds * (1 - rho)], target: 1 })),
  );
  const kappa = q! / (p! + q!);
  if (kappa <= maxKappa) return { curve: { baseSeconds: 1 / (p! + q!), kappa }, bounded: false };
  const [inverse] = fitNonNegative(
    points.map(({ rho, seconds }) => ({ row: [seconds * (1 - maxKappa * rho)], target: 1 })),
  );
  return { curve: { baseSeconds: 1 / inverse!, kappa: maxKappa }, bounded: true };
}
