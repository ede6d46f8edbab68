import { describe, expect, it } from 'vitest';
import { Random } from '../random.js';
import { azure } from './azure.js';
import { mix, renewals } from './mix.js';
import { mooncake } from './mooncake.js';
import { withServegenClients } from './servegen.js';

const arrivalsUntil = (seconds: number, arrivals: { next(): number }): number[] => {
  const times: number[] = [];
  for (let at = arrivals.next(); at < seconds; at = arrivals.next()) times.push(at);
  return times;
};

const coefficientOfVariation = (times: readonly number[]) => {
  const gaps = times.slice(1).map((at, index) => at - times[index]!);
  const mean = gaps.reduce((a, b) => a + b, 0) / gaps.length;
  const variance = gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0) / gaps.length;
  return Math.sqrt(variance) / mean;
};

describe('arrivals', () => {
  it.each([0.5, 1, 3])('with a spread of gaps of %d times their mean have that spread and the rate', (cv) => {
    const times = arrivalsUntil(20_000, renewals(0.5, cv, new Random(1)));
    expect(Math.abs(times.length / 40_000 - 1)).toBeLessThan(0.1);
    expect(Math.abs(coefficientOfVariation(times) / cv - 1)).toBeLessThan(0.1);
  });

  it('of ServeGen’s clients come in order, at the rate asked for, burstier than a Poisson stream', () => {
    const source = withServegenClients(mooncake());
    const times = arrivalsUntil(5_000, source.arrivals!(10, new Random(2)));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    expect(Math.abs(times.length / 50_000 - 1)).toBeLessThan(0.15);
    expect(coefficientOfVariation(times)).toBeGreaterThan(1.2);
  });

  it.each([0.3, 1, 6.5])(
    'replayed from a trace at %d requests/s keep its bursts and never hurry it',
    (rate) => {
      const source = azure('azure-code', { scale: 4, replay: true });
      const times = arrivalsUntil(6_800, source.arrivals!(rate, new Random(3)));
      expect(times).toEqual([...times].sort((a, b) => a - b));
      expect(Math.abs(times.length / (6_800 * rate) - 1)).toBeLessThan(0.1);
      expect(coefficientOfVariation(times)).toBeGreaterThan(2);
    },
  );
});

describe('a mix', () => {
  it('has conversations of its parts by their shares', () => {
    const single = azure('azure-conversation', { scale: 4, replay: false });
    const source = mix([
      [single, 3],
      [mooncake(), 1],
    ]);
    expect(Math.abs(source.meanTurns - (0.75 + 0.25 * mooncake().meanTurns))).toBeLessThan(0.05);
    expect(source.largestTokens).toBeGreaterThan(single.expected.promptTokens);
  });
});
