import type { Random } from '../../../simulator/random.js';
import type { Traffic } from '../capacity/engine-traffic.js';

/** Independent requests, counted each second. */
export function poissonCounts(requestsPerSecond: number, seconds: number, random: Random): number[] {
  return Array.from({ length: seconds }, () => {
    let count = 0;
    for (let at = random.exponential(1); at < requestsPerSecond; at += random.exponential(1)) count++;
    return count;
  });
}

/** Conversations of two to six turns that follow each other after 2 to 3 s, counted each second. */
export function conversationCounts(requestsPerSecond: number, seconds: number, random: Random): number[] {
  const counts = new Array<number>(seconds).fill(0);
  const meanTurns = 4;
  const longestSeconds = 15;
  for (let startAt = -longestSeconds; startAt < seconds; ) {
    startAt += random.exponential(meanTurns / requestsPerSecond);
    const turns = random.integer({ min: 2, max: 6 });
    for (let turn = 0, at = startAt; turn < turns; turn++, at += 2 + random.unit()) {
      const second = Math.floor(at);
      if (second >= 0 && second < seconds) counts[second]!++;
    }
  }
  return counts;
}

/** Of an engine that had nothing to do. */
export const noTraffic: Traffic = {
  requests: 0,
  workSeconds: 0,
  networkSeconds: 0,
  ended: 0,
  endedWorkSeconds: 0,
  answered: 0,
  answeredWorkSeconds: 0,
  coldWorkSeconds: 0,
  toldAnswers: 0,
  timedAnswers: 0,
  staySeconds: 0,
};
