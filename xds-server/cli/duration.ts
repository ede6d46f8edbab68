import { InvalidArgumentError } from 'commander';

const SECONDS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400 };

/** Seconds of `30s`, `10m`, `4h` or `1d`. */
export function duration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)([smhd])$/.exec(text);
  if (match === null) throw new InvalidArgumentError('Give a time such as 30s, 10m, 4h or 1d.');
  return Number(match[1]) * SECONDS[match[2]!]!;
}
