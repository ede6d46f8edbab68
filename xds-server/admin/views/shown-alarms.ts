import type { Alarm } from '../../control/alarms/alarms.js';

/** Of more, only the first of each kind are shown: a thousand replicas that are down must not hide that requests are shed. */
const MOST_ALARMS = 20;
const MOST_OF_A_KIND = 5;

/** What harms requests, or soon may; as in the manual's rules for Prometheus. */
export const URGENT_KINDS: ReadonlySet<string> = new Set([
  'blind',
  'fault',
  'planning',
  'pool-lost',
  'shedding',
  'engine-failing',
  'engine-rejects',
  'frontend-silent',
  'envoy-silent',
  'envoy-rejects',
]);

export interface ShownAlarms {
  /** Urgent ones first. */
  readonly shown: readonly Alarm[];
  /** Kinds of which not all are shown, with how many are not. */
  readonly more: readonly { readonly kind: string; readonly count: number }[];
}

/** What there is room for of alarms. */
export function shownAlarms(alarms: readonly Alarm[]): ShownAlarms {
  const rank = ({ id }: Alarm) => (URGENT_KINDS.has(kindOf(id)) ? 0 : 1);
  const sorted = alarms.toSorted((a, b) => rank(a) - rank(b));
  if (sorted.length <= MOST_ALARMS) return { shown: sorted, more: [] };
  const counts = new Map<string, number>();
  const shown = sorted.filter(({ id }) => {
    const kind = kindOf(id);
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= MOST_OF_A_KIND;
  });
  const more = [...counts].flatMap(([kind, count]) =>
    count > MOST_OF_A_KIND ? [{ kind, count: count - MOST_OF_A_KIND }] : [],
  );
  return { shown, more };
}

function kindOf(alarmId: string): string {
  return alarmId.split(':')[0]!;
}
