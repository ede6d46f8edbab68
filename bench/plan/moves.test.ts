import { describe, expect, it } from 'vitest';
import { Maglev } from '../../simulator/policies/maglev.js';
import { measureMoves } from './moves.js';
import { RingHash, WeightedRendezvous } from './rivals.js';

describe('rivals', () => {
  const weights = [0.5, 0.3, 0.2, 0];
  it.each([
    ['rendezvous', new WeightedRendezvous(4), 0.03],
    ['maglev', new Maglev(4), 0.001],
    ['ring hash', new RingHash(), 0.06],
  ])('%s gives engines their weights', (_, rival, tolerance) => {
    const map = rival.map(weights);
    weights.forEach((weight, engine) => {
      const share = map.filter((other) => other === engine).length / map.length;
      expect(Math.abs(share - weight)).toBeLessThan(tolerance);
    });
  });
});

describe('measureMoves', () => {
  it('finds that a partition moves the least possible, and the others more', () => {
    const { movesPerTv, segmentsPerEngineMax } = measureMoves({ steps: 60, seed: 5 });
    expect(movesPerTv.partition).toBeGreaterThanOrEqual(0.9999);
    expect(movesPerTv.partition).toBeLessThanOrEqual(1.01);
    expect(segmentsPerEngineMax).toBeLessThanOrEqual(16);
    expect(movesPerTv.rendezvous).toBeGreaterThan(1.01);
    expect(movesPerTv.maglev).toBeGreaterThan(1.01);
    expect(movesPerTv.ringHash).toBeGreaterThan(movesPerTv.rendezvous);
  });

  it('gives the same figures for the same seed', () => {
    expect(measureMoves({ steps: 5, seed: 3 })).toEqual(measureMoves({ steps: 5, seed: 3 }));
  });
});
