import fc from 'fast-check';
import { beforeEach, vi } from 'vitest';
import { drawFrom } from '../simulator/filter-host/host.js';
import { Random } from '../simulator/random.js';

/**
 * Properties, and emulated Envoys, draw the same in every run, so that what fails has to do with what was changed. `FC_SEED`,
 * a whole number, has them draw others, and `FC_TIMES` has properties draw so many times as many inputs, for which tests may
 * take so many times as long.
 */
const seed = wholeNumber('FC_SEED', Number.MIN_SAFE_INTEGER);
const times = wholeNumber('FC_TIMES', 1);

fc.configureGlobal({ seed });
seedEnvoys();
beforeEach(seedEnvoys);
if (times > 1) {
  vi.setConfig({ testTimeout: 60_000 * times });
  vi.doMock('fast-check', async (original) => ({
    default: withTimes((await original<FastCheck>()).default, times),
  }));
}

interface FastCheck {
  readonly default: typeof fc;
}

/** A number of runs that is configured for all would not hold for properties that name one. */
export function withTimes(all: typeof fc, times: number): typeof fc {
  const assert: typeof fc.assert = (
    property: fc.IRawProperty<unknown>,
    parameters: fc.Parameters<unknown> = {},
  ) => all.assert(property, { ...parameters, numRuns: (parameters.numRuns ?? 100) * times }) as Promise<void>;
  return { ...all, assert };
}

function seedEnvoys(): void {
  const random = new Random(seed, 'envoy');
  drawFrom((bytes) => bytes.set(bytes.map(() => random.bits())));
}

function wholeNumber(name: string, min: number): number {
  const value = Number(process.env[name] ?? 1);
  if (!Number.isInteger(value) || value < min) {
    throw new Error(`${name} must be a whole number from ${min}, got ${process.env[name]}`);
  }
  return value;
}
