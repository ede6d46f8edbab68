import type { Explained } from '../../control/questions/explain.js';
import { explanationText } from '../../optimizer/index.js';
import { percent } from '../../percent.js';

/** Weights that differ by less read the same. */
const LEAST_SHOWN_DIFFERENCE = 5e-4;

/** An explanation in words, and how it relates to the plan in force, or to the one that was asked about. */
export function explainedText(explained: Explained): string {
  const { explanation } = explained;
  const told = explained.past === null ? inForce(explained) : inThePast(explained, explained.past);
  return `${explanationText(explanation)}${corrected(explained)}\n\n${network(explained)}${told}\n`;
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

function inForce(explained: Explained): string {
  const { planId, failure } = explained;
  const reason = failure === null ? ': the difference is too small to move conversations for' : '';
  const stale = failure === null ? '' : `\nThe last solve failed, this is the one before it: ${failure}`;
  return `Plan ${planId}${given(explained, 'gives', reason)}.${stale}`;
}

function inThePast(explained: Explained, past: NonNullable<Explained['past']>): string {
  const { failure } = explained;
  const begin = new Date(past.createdAtMs).toISOString();
  const end = past.nextAtMs === null ? 'on' : `to ${new Date(past.nextAtMs).toISOString()}`;
  const plan = `This is as it was for plan ${past.sequence} (${past.planId}), in force from ${begin} ${end}.`;
  const reason = failure === null ? ': the difference was too small to move conversations for' : '';
  const other = given(explained, 'gave', reason);
  const unsolved = `\nIts solve failed, and what had been in force went on where it could: ${failure}`;
  return `${plan}${other === '' ? '' : `\nThe plan${other}.`}${failure === null ? '' : unsolved}`;
}

/** What the plan gives where that is not what is explained, and why. */
function given({ weightInForce, isPlain, explanation }: Explained, gives: string, reason: string): string {
  if (weightInForce === null) return '';
  if (isPlain) return ` ${gives} it ${percent(weightInForce)}, which is plain: no solve found it`;
  if (Math.abs(weightInForce - explanation.engine.weight) < LEAST_SHOWN_DIFFERENCE) return '';
  return ` ${gives} it ${percent(weightInForce)}${reason}`;
}
