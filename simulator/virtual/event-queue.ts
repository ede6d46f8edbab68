/** What happens at an event; a promise holds virtual time until it is kept. */
export type Action = () => Promise<void> | void;

interface Event {
  readonly at: number;
  /** Events of one time happen in the order in which they were added. */
  readonly order: number;
  readonly action: Action;
}

/** Events in virtual time, earliest first: a binary heap. */
export class EventQueue {
  readonly #heap: Event[] = [];
  #added = 0;

  /** Infinity when there is none. */
  get nextAt(): number {
    return this.#heap[0]?.at ?? Number.POSITIVE_INFINITY;
  }

  add(at: number, action: Action): void {
    const heap = this.#heap;
    const event = { at, order: this.#added++, action };
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[index] = heap[parent]!;
      index = parent;
    }
    heap[index] = event;
  }

  /** Removes the earliest event. */
  take(): Action {
    const heap = this.#heap;
    const first = heap[0]!;
    const last = heap.pop()!;
    const { length } = heap;
    if (length === 0) return first.action;
    let index = 0;
    for (;;) {
      let child = 2 * index + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[index] = heap[child]!;
      index = child;
    }
    heap[index] = last;
    return first.action;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
