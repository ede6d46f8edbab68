import type { Turn } from '../load/conversations.js';
import { Random } from '../random.js';
import type { ScenarioDemand } from '../scenario.js';
import type { EventQueue } from './event-queue.js';

/**
 * Has every turn of a demand's conversations begin at its time, until the end in seconds. Conversations begin when the
 * source's arrivals say, thinned so that their rate follows the curve.
 */
export function scheduleTurns(
  { id, source, rate }: ScenarioDemand,
  seed: number,
  endAt: number,
  queue: EventQueue,
  begin: (turn: Turn) => void,
): void {
  const random = new Random(seed, id);
  const arrivals = source.arrivals?.(rate.peak / source.meanTurns, random);
  const meanGap = source.meanTurns / rate.peak;
  let number = 0;
  const after = (at: number) => arrivals?.next() ?? at + random.exponential(meanGap);
  const next = (at: number) => {
    if (at >= endAt) return;
    queue.add(at, () => {
      if (random.unit() * rate.peak < rate.at(at)) {
        for (const turn of source.conversation(`${id}-${number++}`, at, random)) {
          if (turn.atSeconds < endAt) queue.add(turn.atSeconds, () => begin(turn));
        }
      }
      next(after(at));
    });
  };
  next(after(0));
}
