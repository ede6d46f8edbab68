import { exactJson } from '../../exact-json.js';
import type { SavedSignals } from '../../signals/signals.js';

// What signals know is large in a large fleet, so its lists are lines of their own, none of which takes long to write. They
// come first: a recording that ends among them does not hold what signals knew.

/** Some of the items of a list, by where it is: `['network', 'pairs']`, or `['demand']`. */
export interface PartLine {
  readonly kind: 'part';
  readonly of: readonly string[];
  readonly items: readonly unknown[];
}

/** A line has more only by its last item. */
const ENOUGH_CHARACTERS = 64 * 1024;

/** Lines with all lists of what is saved. */
export function* partLines(saved: SavedSignals): Generator<string> {
  for (const [of, list] of listsOf(saved)) {
    let items: string[] = [];
    let length = 0;
    for (const item of list) {
      const text = exactJson(item);
      items.push(text);
      length += text.length;
      if (length < ENOUGH_CHARACTERS) continue;
      yield partLine(of, items);
      items = [];
      length = 0;
    }
    if (items.length > 0) yield partLine(of, items);
  }
}

/** What is left of it: its lists are empty. */
export function withoutLists(saved: SavedSignals): SavedSignals {
  return emptied(saved) as SavedSignals;
}

/** Puts items back where they were. */
export function addPart(saved: SavedSignals, { of, items }: PartLine): void {
  let list: unknown = saved;
  for (const name of of) list = (list as Record<string, unknown>)[name];
  for (const item of items) (list as unknown[]).push(item);
}

function partLine(of: readonly string[], items: readonly string[]): string {
  return `{"kind":"part","of":${JSON.stringify(of)},"items":[${items.join(',')}]}`;
}

/** Lists directly in an object, and in objects in it. */
function* listsOf(
  value: object,
  of: readonly string[] = [],
): Generator<[readonly string[], readonly unknown[]]> {
  for (const [name, each] of Object.entries(value)) {
    if (Array.isArray(each)) yield [[...of, name], each];
    else if (isObject(each)) yield* listsOf(each, [...of, name]);
  }
}

function emptied(value: object): object {
  const entries = Object.entries(value).map(([name, each]) => {
    return [name, Array.isArray(each) ? [] : isObject(each) ? emptied(each) : each];
  });
  return Object.fromEntries(entries);
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
