import { describe, expect, it } from 'vitest';
import type { Explained } from '../../control/questions/explain.js';
import type { EngineCost } from '../../optimizer/explain/explain.js';
import { explainedText } from './explained-text.js';

const engine: EngineCost = {
  engineId: 'b',
  use: 'unused',
  weight: 0,
  rps: 0,
  lines: [],
  latencySeconds: 0,
  marginalSeconds: 0,
  shortSeconds: 0,
  bound: null,
};

function text(change: Partial<Explained>): string {
  return explainedText({
    planId: '0123456789abcdef',
    solvedAtMs: 0,
    failure: null,
    weightInForce: 0,
    isPlain: false,
    configuredNetworkSeconds: null,
    capacity: null,
    past: null,
    explanation: {
      frontendId: 'west',
      poolId: 'm',
      engineId: 'b',
      demandRps: 10,
      shed: [],
      rowMarginalSeconds: 1,
      engine,
      load: {
        engineId: 'b',
        effectiveCapacity: 1,
        rho: 0,
        congestionPriceSeconds: 0,
        scarcityPriceSeconds: 0,
      },
      supply: {
        ...{ replicas: 1, readyReplicas: 1, health: 1, ramp: 1, drain: 1, penalty: 0, latencyFactor: 1 },
      },
      targetUtilization: 0.9,
      maxUtilization: 1,
      choices: [],
    },
    ...change,
  });
}

describe('explainedText', () => {
  it('says when the capacity of the engine is not what its profile says', () => {
    const capacity = {
      engineId: 'b',
      share: 0.714,
      sinceMs: 0,
      loweredMs: 0,
      evidence: null,
      endsWhen: 'it ends',
    };
    expect(text({ capacity: { ...capacity, state: 'corrected' } })).toContain(
      'Engine b is planned with 71 % of what its profile says, by what it got done, since 1970-01-01T00:00:00.000Z; it ends.',
    );
    expect(text({ capacity: { ...capacity, share: 1, sinceMs: null, state: 'usual' } })).not.toContain(
      'planned with',
    );
  });

  it('names the plan in force', () => {
    expect(text({})).toMatch(/\n\nPlan 0123456789abcdef\.\n$/);
  });

  it('says when no solve found the weight in force', () => {
    expect(text({ failure: 'it broke', weightInForce: 0.4, isPlain: true })).toContain(
      'gives it 40.0 %, which is plain: no solve found it.\nThe last solve failed',
    );
  });

  it('says what the plan in force gives when that is not what is explained', () => {
    expect(text({ weightInForce: 0.006 })).toContain(
      'Plan 0123456789abcdef gives it 0.6 %: the difference is too small to move conversations for.',
    );
  });

  it('says what is configured where the network is measured', () => {
    expect(text({ configuredNetworkSeconds: 0.03 })).toContain(
      '\n\nThe network is by measurement; 30.0 ms are configured.\nPlan 0123456789abcdef.',
    );
  });

  it('gives no reason for a difference that a failed solve leaves', () => {
    expect(text({ weightInForce: 0.5, failure: 'no time' })).toContain(
      'Plan 0123456789abcdef gives it 50.0 %.\nThe last solve failed, this is the one before it: no time\n',
    );
  });

  it('tells of a plan of the past when it was in force, and what it gave', () => {
    const past = { planId: '0123456789abcdef', sequence: 7, createdAtMs: 0, nextAtMs: 60_000 };
    expect(text({ past, weightInForce: 0.006 })).toContain(
      'This is as it was for plan 7 (0123456789abcdef), in force from 1970-01-01T00:00:00.000Z to 1970-01-01T00:01:00.000Z.\n' +
        'The plan gave it 0.6 %: the difference was too small to move conversations for.\n',
    );
    const failed = text({ past: { ...past, nextAtMs: null }, weightInForce: 0.5, failure: 'no time' });
    expect(failed).toContain('in force from 1970-01-01T00:00:00.000Z on.\nThe plan gave it 50.0 %.\n');
    expect(failed).toContain('what had been in force went on where it could: no time\n');
  });
});
