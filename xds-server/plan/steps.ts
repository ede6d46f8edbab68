/** What is made step by step, so that something else may be done in between. */
export type Steps<T> = Generator<void, T, void>;

export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** Waits for `pause` between two steps. */
export async function inSteps<T>(steps: Steps<T>, pause: () => Promise<void>): Promise<T> {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
    await pause();
  }
}
