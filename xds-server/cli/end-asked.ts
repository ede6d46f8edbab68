import type { EventEmitter } from 'node:events';

/** A terminal, or who ends a whole group, asks a process that others pass signals on to more than once. */
const ONE_REQUEST_MS = 1_000;

/** Resolves once SIGTERM or SIGINT asks to end. What comes more than a second later, of either, means at once. */
export function endAsked(
  process: EventEmitter,
  atOnce: () => void,
  nowMs: () => number = () => performance.now(),
): Promise<void> {
  return new Promise((resolve) => {
    let firstMs: number | undefined;
    const ask = () => {
      firstMs ??= nowMs();
      if (nowMs() - firstMs > ONE_REQUEST_MS) atOnce();
      resolve();
    };
    for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, ask);
  });
}
