/** Items by key, in the order in which keys and items first appear. */
export function groupBy<K, T>(items: Iterable<T>, key: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const at = key(item);
    const group = groups.get(at);
    if (group) group.push(item);
    else groups.set(at, [item]);
  }
  return groups;
}

export function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) total += value;
  return total;
}

/** NaN of none. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

/** The middle value, of an even number the smaller one of both in the middle. */
export function lowerMedian(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!;
}

/** Code-unit order for strings: the same on every machine, whatever its locale. */
export function compare<T extends string | number>(a: T, b: T): number {
  if (a < b) return -1;
  return a > b ? 1 : 0;
}

/** Order of ids, as of names, by code units. */
export function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return compare(a.id, b.id);
}

export function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compare(a.name, b.name);
}
