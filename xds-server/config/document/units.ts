import type { Path } from '../problem.js';

const SECONDS: Readonly<Record<string, number>> = {
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  sec: 1,
  seconds: 1,
  m: 60,
  min: 60,
  h: 3600,
  d: 86_400,
};

/** How to write a number that was given with a unit, as keys hold theirs in their names: `write 0.03: it is in seconds`. */
export function withoutUnit(text: string, path: Path): string | undefined {
  const match = /^\s*(-?\d+(?:\.\d+)?)\s*([a-zµ]+|%)\s*$/i.exec(text);
  if (match === null) return undefined;
  const [, number, written] = match as unknown as [string, string, string];
  const { unit, ofOne } = unitOf(path);
  if (written === '%') {
    if (unit === 'percent') return `write ${number}: it is in percent`;
    return unit === undefined ? `write ${shortened(Number(number) / 100)}: it is a share of 1` : undefined;
  }
  const seconds = SECONDS[written.toLowerCase()];
  if (seconds === undefined || ofOne === undefined) return undefined;
  return `write ${shortened((Number(number) * seconds) / ofOne)}: it is in ${unit}`;
}

/** The unit that the name of a key, or of what it is in, ends or begins with, and its seconds where it is one of time. */
function unitOf(path: Path): { readonly unit?: string; readonly ofOne?: number } {
  for (const step of path.toReversed()) {
    if (typeof step === 'number') continue;
    if (/Ms$/.test(step)) return { unit: 'milliseconds', ofOne: 1e-3 };
    if (/Seconds$|^secondsPer/.test(step)) return { unit: 'seconds', ofOne: 1 };
    if (/Percent$/.test(step)) return { unit: 'percent' };
    if (/PerSecond$|Tokens$|Bytes$|Dollar|port$/.test(step)) return { unit: 'another unit' };
  }
  return {};
}

function shortened(value: number): string {
  return String(Number(value.toPrecision(12)));
}
