import { keysOf, OpenLoop, type Result } from './load.js';
import type { Mesh } from './mesh.js';

/**
 * Requests are the clock, which a busy machine slows down too; half a second is for what it does later than that, and more is
 * allowed for as far as it keeps control server and Envoys waiting.
 */
const MOST_SECONDS = 3.5;
/** A surge that is not planned for by then never is. */
const GIVEN_UP_SECONDS = 14;
/** So often a surge begins again that was none. */
const MOST_TIMES = 3;

interface PlanJson {
  readonly createdAtMs: number;
  readonly rows: readonly { readonly frontendId: string; readonly demandRps: number }[];
}

/** Where requests come from, and the steady load there. */
export interface Surging {
  readonly frontendId: string;
  readonly url: string;
  readonly requestsPerSecond: number;
  readonly load: OpenLoop;
}

/**
 * Sends half as much again until it is planned for, which must be within 3 s. A pause of the sender for some tenths of a second
 * looks as if it had held requests back, and what follows on it like those; so after one the surge begins again.
 */
export async function surgeByHalf(mesh: Mesh, from: Surging): Promise<readonly Result[]> {
  const { frontendId, url, requestsPerSecond, load } = from;
  const isPlanned = ({ rows }: PlanJson) =>
    rows.some((row) => row.frontendId === frontendId && row.demandRps > 1.25 * requestsPerSecond);
  const plan = () => mesh.api<PlanJson>('/v1/plan');
  const results: Result[] = [];
  for (let time = 1; ; time++) {
    const more = new OpenLoop(url, requestsPerSecond / 2, keysOf(100, `surge-${time}`));
    const [heldUpMs, waitedMs] = [load.heldUpMs, mesh.waitedMs];
    const isOver = () => more.results.length > (GIVEN_UP_SECONDS * requestsPerSecond) / 2;
    await mesh.eventually('a plan for the surge', async () => isPlanned(await plan()) || isOver(), 60_000);
    const last = await plan();
    const added = await more.stop();
    results.push(...added);
    const sent = added.filter(({ atMs }) => !isPlanned(last) || atMs <= last.createdAtMs).length;
    const mostSeconds = MOST_SECONDS + (mesh.waitedMs - waitedMs) / 1_000;
    if (isPlanned(last) && sent <= (mostSeconds * requestsPerSecond) / 2) return results;
    const pausedMs = load.heldUpMs - heldUpMs + more.heldUpMs;
    // A sender that has paused each time cannot tell how soon it was.
    if (isPlanned(last) && pausedMs > 0 && time === MOST_TIMES) return results;
    if (pausedMs === 0 || time === MOST_TIMES)
      throw new Error(
        `${isPlanned(last) ? '' : 'not '}planned for after ${sent} requests of the surge, with pauses of ${Math.round(pausedMs)} ms\n${await mesh.account()}`,
      );
    await mesh.eventually('the end of the surge', async () => !isPlanned(await plan()), 40_000);
  }
}
