import { describe, expect, it } from 'vitest';
import type { PolicyResult } from './measurement.js';
import type { PhaseResult } from './phase.js';
import { comparison, isValid, jsonReport, notes, policyReport } from './report.js';

function phase(lag: number, change: Partial<PolicyResult> = {}): PhaseResult {
  const policy: PolicyResult = {
    requests: 10,
    meanE2eMs: 700.04,
    p50E2eMs: 650,
    p90E2eMs: 900,
    p99E2eMs: 1200,
    p50TtftMs: 50,
    p90TtftMs: Number.NaN,
    sloShare: 0.98765,
    cacheHitShare: 0.7,
    errors: 1,
    timeouts: 2,
    shed: 3,
    overflowed: 0,
    flows: ['west', 'middle', 'east'].flatMap((frontend) =>
      ['a', 'b', 'c'].map((engine) => ({
        frontend,
        engine,
        plannedRps: 30,
        measuredRps: frontend === 'middle' && engine === 'c' ? 31 : 30.1,
        differenceRps: frontend === 'middle' && engine === 'c' ? 1 : 0.1,
        standardErrorRps: 0.2,
      })),
    ),
    loads: ['a', 'b', 'c'].map((engine) => ({ engine, rps: 72, capacityRps: 80 })),
    errorDetails: new Map([['503 full', 1]]),
    ...change,
  };
  return { policy, lagMs: new Map([['engine c', lag]]) };
}

describe('the report of the demo', () => {
  it('is invalid as soon as one process lagged too much under either policy', () => {
    expect(isValid({ nearest: phase(20), wardrop: phase(1) })).toBe(true);
    expect(isValid({ nearest: phase(1), wardrop: phase(20.1) })).toBe(false);
    expect(isValid({ nearest: phase(20.1), wardrop: phase(1) })).toBe(false);
  });

  it('writes the agreed JSON', () => {
    const figures = {
      meanE2eMs: 700,
      p50TtftMs: 50,
      p90TtftMs: null,
      sloShare: 0.9877,
      cacheHitShare: 0.7,
      errors: 1,
      timeouts: 2,
      shed: 3,
      requests: 10,
      maxUtilization: 0.9,
    };
    const json: unknown = JSON.parse(JSON.stringify(jsonReport({ nearest: phase(1), wardrop: phase(1) })));
    expect(json).toEqual({
      valid: true,
      policies: { nearest: figures, wardrop: { ...figures, flows: expect.any(Array) } },
    });
    const { flows } = (json as { policies: { wardrop: { flows: object[] } } }).policies.wardrop;
    expect(flows).toHaveLength(9);
    expect(flows[5]).toEqual({ frontend: 'middle', engine: 'c', plannedRps: 30, measuredRps: 31 });
  });

  it('says what differs from the plan by more than chance, which errors were met, and what was too slow', () => {
    const text = notes({ nearest: phase(1), wardrop: phase(35) });
    expect(text).toContain('explains: middle→c 1.00 requests/s, standard error 0.20.');
    expect(text).toContain('Error under nearest only, 1 times: 503 full');
    expect(text).toContain('THIS RUN IS INVALID');
    expect(text).toContain('35.0 ms at p99 (engine c; limit 20 ms)');
  });

  it('says which requests were not expected where the plan has them, as their engine was busy', () => {
    const busy = notes({ nearest: phase(1), wardrop: phase(1, { overflowed: 1 }) });
    expect(busy).toContain('Left out of this: 10.0 % of the requests, whose engine was busy');
    expect(notes({ nearest: phase(1), wardrop: phase(1) })).not.toContain('busy');
  });

  it('puts loads beside capacities and both policies beside each other', () => {
    expect(policyReport('x', phase(1))).toContain('72.0 of 80, 90 %');
    expect(comparison({ nearest: phase(1, { sloShare: 0.5 }), wardrop: phase(1) })).toMatch(
      /within the SLO +50\.0 % +98\.8 %/,
    );
  });
});
