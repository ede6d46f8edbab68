import type { Changed } from '../../control/planning/plan-history.js';
import { whatChangedText } from '../../optimizer/index.js';

/** What changed between two plans, in words. */
export function changedText(changed: Changed): string {
  const { since, until } = changed;
  const time = (ms: number) => new Date(ms).toISOString();
  const title = `From plan ${since.sequence} (${time(since.createdAtMs)}) to plan ${until.sequence} (${time(until.createdAtMs)}):`;
  return `${title}\n${whatChangedText(changed)}\n`;
}
