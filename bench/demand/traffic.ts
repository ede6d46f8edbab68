import type { Random } from '../../simulator/random.js';

/** Requests in the next `seconds`, at `requestsPerSecond` in the mean. */
export type Traffic = (requestsPerSecond: number, seconds: number) => number;

/** Traffic by how its requests come. */
export const traffics = {
  /** At equal distances, as a load generator sends them. */
  even: (random: Random): Traffic => {
    let owed = random.unit();
    return (requestsPerSecond, seconds) => {
      owed += requestsPerSecond * seconds;
      const count = Math.floor(owed);
      owed -= count;
      return count;
    };
  },
  /** Independent of each other: a Poisson process. */
  independent: (random: Random): Traffic => {
    return (requestsPerSecond, seconds) => poisson(requestsPerSecond * seconds, random);
  },
  /** In batches at one moment of 1, 2, 3, … requests, each a third as likely as the one before: dispersion 2. */
  batches: (random: Random): Traffic => {
    return (requestsPerSecond, seconds) => {
      let count = 0;
      for (let batch = poisson((requestsPerSecond * seconds) / 1.5, random); batch > 0; batch--) {
        do count++;
        while (random.unit() < 1 / 3);
      }
      return count;
    };
  },
  /** At a rate that wanders within seconds: dispersion 2 in windows of several seconds, less in shorter ones. */
  gusts: (random: Random): Traffic => {
    let level = 0;
    return (requestsPerSecond, seconds) => {
      const shape = 4 * requestsPerSecond;
      const keep = Math.exp(-seconds / 2);
      level = keep * level + Math.sqrt((1 - keep * keep) / shape) * random.normal();
      return poisson(requestsPerSecond * seconds * Math.max(0, 1 + level), random);
    };
  },
} as const;

export type TrafficKind = keyof typeof traffics;

function poisson(mean: number, random: Random): number {
  let count = 0;
  for (let at = random.exponential(1); at < mean; at += random.exponential(1)) count++;
  return count;
}
