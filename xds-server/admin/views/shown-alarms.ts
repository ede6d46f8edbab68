import type { Alarm } from '../../control/alarms/alarms.js';

/** Of more, only the first of each kind are shown: a thousand replicas that are down must not hide that requests are shed. */
const MOST_ALARMS = 20;
const MOST_OF_A_KIND = 5;

export interface ShownAlarms {
  readonly shown: readonly Alarm[];
  /** Kinds of which not all are shown, with how many are not. */
  readonly more: readonly { readonly kind: string; readonly count: number }[];
}

/** What there is room for of alarms that are sorted by id. */
export function shownAlarms(alarms: readonly Alarm[]): ShownAlarms {
  if (alarms.length <= MOST_ALARMS) return { shown: alarms, more: [] };
  const counts = new Map<string, number>();
  const shown = alarms.filter(({ id }) => {
    const kind = id.split(':')[0]!;
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= MOST_OF_A_KIND;
  });
  const more = [...counts].flatMap(([kind, count]) =>
    count > MOST_OF_A_KIND ? [{ kind, count: count - MOST_OF_A_KIND }] : [],
  );
  return { shown, more };
}
