import { MOST_ACTIONS, type OperatorAction, type Orders } from '../fleet/operations.js';

/**
 * What operators ordered on either of two control servers: of each target what was ordered last. The same whichever comes first
 * and however often, so that all servers end up with the same.
 */
export function mergedOrders(own: Orders, other: Orders): Orders {
  const [ownTimes, otherTimes] = [lastActions(own), lastActions(other)];
  /** Where both know the same action, an order that only one of them has is not over. */
  const isCurrent = (target: string, times: typeof ownTimes, rest: typeof ownTimes) =>
    (times.get(target) ?? 0) >= (rest.get(target) ?? 0);
  const merge = <T>(mine: readonly T[], theirs: readonly T[], targetOf: (entry: T) => string) => {
    const kept = new Map<string, T>();
    for (const entry of theirs) {
      const target = targetOf(entry);
      if (isCurrent(target, otherTimes, ownTimes)) kept.set(target, entry);
    }
    for (const entry of mine) {
      const target = targetOf(entry);
      if (isCurrent(target, ownTimes, otherTimes)) kept.set(target, entry);
    }
    return [...kept].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry);
  };
  return {
    drains: merge(own.drains, other.drains, ({ engineId, address }) => drainKey(address ?? engineId)),
    orders: merge(own.orders, other.orders, ({ engineId }) => penaltyKey(engineId)),
    actions: mergedActions(own.actions, other.actions),
  };
}

/** When each target was last ordered anything, by kind of order. */
function lastActions({ actions }: Orders): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  for (const { action, target, atMs } of actions) {
    const key = action === 'drain' || action === 'undrain' ? drainKey(target) : penaltyKey(target);
    times.set(key, Math.max(times.get(key) ?? 0, atMs));
  }
  return times;
}

function drainKey(target: string): string {
  return `drain ${target}`;
}

function penaltyKey(target: string): string {
  return `penalty ${target}`;
}

function mergedActions(
  own: readonly OperatorAction[],
  other: readonly OperatorAction[],
): readonly OperatorAction[] {
  const all = new Map([...own, ...other].map((action) => [actionKey(action), action]));
  return [...all]
    .sort(([a, { atMs: aMs }], [b, { atMs: bMs }]) => aMs - bMs || (a < b ? -1 : 1))
    .map(([, action]) => action)
    .slice(-MOST_ACTIONS);
}

function actionKey({ atMs, action, target, by }: OperatorAction): string {
  return JSON.stringify([atMs, action, target, by]);
}
