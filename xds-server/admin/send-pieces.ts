import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** So long a text is made without a pause; then sockets and timers have their turn. */
const SLICE_MS = 20;

/**
 * Sends a text that is made piece by piece. Envoys wait for the event loop that makes it, and fleets can be so large that it takes
 * seconds.
 */
export async function sendPieces(response: ServerResponse, pieces: Iterable<string>): Promise<void> {
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  let text = '';
  let sinceMs = performance.now();
  for (const piece of pieces) {
    text += piece;
    if (performance.now() - sinceMs < SLICE_MS) continue;
    const isTaken = response.write(text);
    text = '';
    // A reader that is slow does not have all of it kept for it.
    await (isTaken || response.destroyed ? nextTurn() : Promise.race([once(response, 'drain'), closed]));
    if (response.destroyed) return;
    sinceMs = performance.now();
  }
  response.end(text);
}
