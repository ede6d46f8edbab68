import { InvalidArgumentError } from 'commander';

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Reads times such as `30s`, `10m`, `4h` or `1d`, from one to another of these, in seconds. */
export function durationWithin(least: string, most: string): (text: string) => number {
  const [from, to] = [duration(least), duration(most)];
  return (text) => {
    const seconds = duration(text);
    if (seconds >= from && seconds <= to) return seconds;
    throw new InvalidArgumentError(`Give a time from ${least} to ${most}.`);
  };
}

function duration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Give a time such as 30s, 10m, 4h or 1d.');
  return Number(match[1]) * SECONDS[match[2]!]!;
}
