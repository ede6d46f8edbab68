import { type TokenMix, type WorkModel, workSeconds } from '../profile.js';
import type { Capacity } from './capacity.js';
import { fitNonNegative } from './regression.js';

export interface WorkFit {
  readonly work: WorkModel;
  /** Largest relative error of the work against 1 / capacity. */
  readonly maxError: number;
  /** The coefficients that the sizes can tell apart; the others are 0. */
  readonly identified: readonly (keyof WorkModel)[];
}

/** Token counts within this factor are one size to a fit: random lengths vary by less from stage to stage. */
export const sizeStep = 1.1;

/** Work of a request without prompt where the data show none, as a share of the smallest request's. */
const leastShare = 0.01;

/**
 * Work from what one replica serves of each request size: at capacity one second of a replica goes to
 * `requestsPerSecond` requests, so a request costs 1 / capacity. One size gives plain seconds a request. Several give
 * seconds a token by non-negative least squares on relative errors, for the kinds of tokens whose counts differ.
 */
export function fitWork(capacities: readonly Capacity[]): WorkFit {
  const columns = separableColumns(capacities);
  const coefficients = fitNonNegative(
    capacities.map((capacity) => ({
      row: columns.map((column) => unitOf[column](capacity) * capacity.requestsPerSecond),
      target: 1,
    })),
  );
  const work = { secondsPerRequest: 0, secondsPerUncachedPromptToken: 0, secondsPerOutputToken: 0 };
  columns.forEach((column, index) => {
    work[column] = coefficients[index]!;
  });
  // A prompt found whole in a cache still decodes: without any other cost it would seem free.
  if (work.secondsPerRequest + work.secondsPerOutputToken === 0) {
    work.secondsPerRequest = Math.min(...capacities.map((c) => leastShare / c.requestsPerSecond));
  }
  const errors = capacities.map((c) => Math.abs(workSeconds({ work }, c) * c.requestsPerSecond - 1));
  return { work, maxError: Math.max(...errors), identified: columns };
}

const unitOf: Record<keyof WorkModel, (mix: TokenMix) => number> = {
  secondsPerRequest: () => 1,
  secondsPerUncachedPromptToken: (mix) => mix.uncachedPromptTokens,
  secondsPerOutputToken: (mix) => mix.outputTokens,
};

function separableColumns(sizes: readonly TokenMix[]): (keyof WorkModel)[] {
  const outputVaries = varies(sizes.map((size) => size.outputTokens));
  // Prompts that grow in step with answers cannot be told from them; the work then goes to the answers, which a cache
  // hit does not shorten.
  const promptVaries =
    varies(sizes.map((size) => size.uncachedPromptTokens)) &&
    (!outputVaries || varies(sizes.map((size) => size.uncachedPromptTokens / size.outputTokens)));
  const tokens: (keyof WorkModel)[] = [];
  if (promptVaries) tokens.push('secondsPerUncachedPromptToken');
  if (outputVaries) tokens.push('secondsPerOutputToken');
  // Two sizes cannot give three coefficients: tokens explain work before a fixed cost does.
  return tokens.length < sizes.length ? ['secondsPerRequest', ...tokens] : tokens;
}

/** Whether the largest count stands out from the smallest. */
export function varies(counts: readonly number[]): boolean {
  return Math.max(...counts) > sizeStep * Math.min(...counts);
}
