import { InvalidArgumentError } from 'commander';
import type { DemandChange } from '../control/questions/what-if.js';

/** `engine=b`, repeated, as a list of engine ids. */
export function withoutOption(text: string, before: readonly string[] = []): readonly string[] {
  const id = /^engine=(.+)$/.exec(text)?.[1];
  if (id === undefined) throw new InvalidArgumentError('expected engine=ID.');
  return [...before, id];
}

/** `west=+30%`, `west=-10%`, `west=120` or `west/POOL=120`, repeated. */
export function demandOption(text: string, before: readonly DemandChange[] = []): readonly DemandChange[] {
  const match = /^([^/=]+)(?:\/(.+))?=(?:([+-]\d+(?:\.\d+)?)%|(\d+(?:\.\d+)?))$/.exec(text);
  if (match === null) {
    throw new InvalidArgumentError('expected FRONTEND[/POOL]=+30%, =-10% or =120 (requests per second).');
  }
  const [, frontendId, poolId, percent, rps] = match;
  if (Number(percent ?? 0) < -100) {
    throw new InvalidArgumentError('demand cannot fall by more than 100 %.');
  }
  return [
    ...before,
    {
      frontendId: frontendId!,
      ...(poolId === undefined ? {} : { poolId }),
      ...(percent === undefined ? { requestsPerSecond: Number(rps) } : { factor: 1 + Number(percent) / 100 }),
    },
  ];
}
