import type { NeedCondition } from '../../wire/snapshot-view.js';

/** Requests that are more or less important than others. */
export interface PriorityClass {
  readonly id: string;
  /** -100..100, larger is more important; requests of no class have 0. */
  readonly priority: number;
  /** Which requests belong to it. */
  readonly when: NeedCondition;
}

/** Priorities that requests may have, the most important first; 0 is always one of them. */
export function prioritiesOf({
  classes = [],
}: {
  readonly classes?: readonly PriorityClass[];
}): readonly number[] {
  return [...new Set([0, ...classes.map(({ priority }) => priority)])].sort((a, b) => b - a);
}

/** Names a class of a pool: as the pool itself for priority 0. */
export function classId(poolId: string, priority: number): string {
  return priority === 0 ? poolId : `${poolId} ${priority}`;
}
