import type { Move } from './demand-band.js';

/** A small change of demand leaves this share of the time that conditions have held. */
const LEFT_BY_SMALL_MOVE = 0.25;

/**
 * Since when conditions count as holding, in milliseconds, once demand has moved. A large change makes everything new.
 * A small one is waited for until it is sure to last, and says less: conditions that held for long are likely to go on,
 * and what is worth moving is moved at once. Where small changes come often, the time stays short.
 */
export function settledSince(beforeMs: number, move: Move, nowMs: number): number {
  return move === 'large' ? nowMs : nowMs - LEFT_BY_SMALL_MOVE * (nowMs - beforeMs);
}
