import fc from 'fast-check';
import { expect, it } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { type EngineUsage, noEngineUsage, noPoolUsage, noVmUsage } from '../../wire/usage-report.js';
import { loadConfig } from '../config/load.js';
import { effectiveCapacity } from '../fleet/fleet-state.js';
import type { ProbeResult } from './readiness/replica-health.js';
import { Signals } from './signals.js';

const config = loadConfig('/none/fleet.yaml', () =>
  [
    'frontends: [{id: f, region: r}, {id: g, region: r}]',
    'engines:',
    ...['a', 'b', 'c'].map(
      (id, at) => `- {id: ${id}, region: r, models: [m], profile: p, endpoints: ["10.0.0.${at + 1}:80"]}`,
    ),
    'profiles: {p: {work: {secondsPerRequest: 0.02}, ttft: {baseSeconds: 0.05}, tbot: {baseSeconds: 0.01}}}',
    'demand: {f: {requestsPerSecond: 20, outputTokens: 20}, g: {requestsPerSecond: 20, outputTokens: 20}}',
  ].join('\n'),
);
const engineIds = config.fleet.engines.map(({ id }) => id);

/** What every source says in one second when all is well, and what the one that went mad says instead. */
interface Madness {
  readonly source: 'probe' | 'report' | 'load';
  readonly seconds: readonly { readonly number: number; readonly kind: 'silent' | 'nonsense' }[];
}

const madness: fc.Arbitrary<Madness> = fc.record({
  source: fc.constantFrom('probe', 'report', 'load'),
  seconds: fc.array(
    fc.record({
      number: fc.oneof(fc.nat(100), fc.double({ min: 0, max: 1e12, noNaN: true })),
      kind: fc.constantFrom('silent', 'nonsense'),
    }),
    { minLength: 1, maxLength: 40 },
  ),
});

it('whatever a single source says or does not, there are engines to plan for, and the others are believed', () => {
  fc.assert(
    fc.property(madness, ({ source, seconds }) => {
      const signals = new Signals(config, [], 0);
      let sequence = 0;
      const sums = new Map(['f', 'g'].map((id) => [id, { requests: 0 }]));
      const report = (frontendId: string, nowMs: number, mad?: number) => {
        const sum = sums.get(frontendId)!;
        sum.requests += 20;
        const honest = {
          planned: sum.requests,
          ended: sum.requests,
          status2xx: sum.requests,
          wholeCount: sum.requests,
          wholeSecondsSum: 0.25 * sum.requests,
        };
        const usage: Partial<EngineUsage> =
          mad === undefined ? honest : { planned: mad, ended: 0, wholeCount: 1, wholeSecondsSum: mad };
        signals.acceptReport(
          frontendId,
          `envoy-${frontendId}`,
          {
            vms: [
              {
                ...noVmUsage(1n, ++sequence),
                pools: [{ ...noPoolUsage(id64('m')), offered: mad ?? sum.requests }],
                engines: engineIds.map((id) => ({ ...noEngineUsage(id64('m'), id64(id)), ...usage })),
              },
            ],
          },
          nowMs,
        );
      };
      for (let second = 0; second < 20 + seconds.length; second++) {
        const nowMs = second * 1_000;
        const mad = second < 20 ? undefined : seconds[second - 20];
        const isMad = (each: Madness['source']) => mad !== undefined && source === each;
        for (const engine of config.fleet.engines) {
          const failed: ProbeResult = { ok: false, kind: 'timeout', detail: 'no answer' };
          const isSilent = engine.id === 'a' && isMad('probe');
          signals.acceptProbe(engine.id, engine.endpoints[0]!, isSilent ? failed : { ok: true }, nowMs);
          if (engine.id !== 'a' || !isMad('load')) signals.acceptLoad(engine, 5, 1, nowMs);
          else if (mad!.kind === 'nonsense') signals.acceptLoad(engine, mad!.number, 1, nowMs);
        }
        report('f', nowMs);
        if (!isMad('report')) report('g', nowMs);
        else if (mad!.kind === 'nonsense') report('g', nowMs, mad!.number);
        const { state } = signals.evaluate(nowMs);
        for (const engine of state.engines) {
          expect(effectiveCapacity(engine)).toBeGreaterThanOrEqual(0);
          expect(effectiveCapacity(engine)).toBeLessThanOrEqual(1);
          expect(engine.latencyFactor).toBeGreaterThanOrEqual(1);
          expect(engine.latencyFactor).toBeLessThanOrEqual(10);
        }
        expect(state.engines.filter((engine) => effectiveCapacity(engine) > 0).length).toBeGreaterThanOrEqual(
          2,
        );
        for (const { requestsPerSecond } of state.demands) {
          expect(requestsPerSecond).toBeGreaterThanOrEqual(0);
          expect(requestsPerSecond).toBeLessThan(Infinity);
        }
        expect(state.demands.find(({ frontendId }) => frontendId === 'f')!.requestsPerSecond).toBeCloseTo(
          20,
          0,
        );
      }
    }),
    { numRuns: 40 },
  );
});
