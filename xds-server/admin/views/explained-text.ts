import type { Explained } from '../../control/questions/explain.js';
import { explanationText } from '../../optimizer/index.js';
import { percent } from '../../percent.js';

/** Weights that differ by less read the same. */
const LEAST_SHOWN_DIFFERENCE = 5e-4;

/** An explanation in words, and how it relates to the plan in force. */
export function explainedText(explained: Explained): string {
  const { planId, failure, explanation } = explained;
  const stale = failure === null ? '' : `\nThe last solve failed, this is the one before it: ${failure}`;
  return `${explanationText(explanation)}${corrected(explained)}\n\n${network(explained)}Plan ${planId}${inForce(explained)}.${stale}\n`;
}

function corrected({ capacity }: Explained): string {
  if (capacity === null || capacity.sinceMs === null) return '';
  const { engineId, state, share, sinceMs, endsWhen } = capacity;
  const done = `${percent(share, 0)} of what its profile says`;
  const since = new Date(sinceMs).toISOString();
  const consequence = state === 'corrected' ? 'is planned with' : 'would be planned with';
  return `\nEngine ${engineId} ${consequence} ${done}, by what it got done, since ${since}; ${endsWhen}.`;
}

function network({ configuredNetworkSeconds: seconds }: Explained): string {
  if (seconds === null) return '';
  return `The network is by measurement; ${(1_000 * seconds).toFixed(1)} ms are configured.\n`;
}

function inForce({ weightInForce, failure, explanation, isPlain }: Explained): string {
  if (weightInForce === null) return '';
  if (isPlain) return ` gives it ${percent(weightInForce)}, which is plain: no solve found it`;
  if (Math.abs(weightInForce - explanation.engine.weight) < LEAST_SHOWN_DIFFERENCE) return '';
  const reason = failure === null ? ': the difference is too small to move conversations for' : '';
  return ` gives it ${percent(weightInForce)}${reason}`;
}
