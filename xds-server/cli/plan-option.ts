import { InvalidArgumentError } from 'commander';
import { isPlanName } from '../control/planning/plan-history.js';

/** How a plan is named, by its number or its id. */
export function planOption(text: string): string {
  if (isPlanName(text)) return text;
  throw new InvalidArgumentError('expected the number or the id of a plan.');
}
