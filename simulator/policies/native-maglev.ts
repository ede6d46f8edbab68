import { Maglev } from '../../bench/plan/rivals.js';
import { id64 } from '../../wire/hash.js';
import {
  type EngineUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
} from '../../wire/usage-report.js';
import { addressOf, ControlLoop, wallMs } from './control-loop.js';
import { mix } from './hashing.js';
import type { PolicyFactory } from './policy.js';

/** As the control server does it: smaller changes of weights are not pushed, larger ones not all the time. */
const PUSHED_DIFFERENCE = 0.02;

/**
 * Envoy's own maglev over Wardrop's weights, as in `steering: native`: the plans are ours, the choice within them is a
 * table (Eisenbud et al., NSDI 2016) that is built anew with every push. No backups, no retries beyond the next entry.
 */
export const nativeMaglev: PolicyFactory = async ({ scenario, local }) => {
  const loop = new ControlLoop(scenario);
  const maglev = new Maglev(scenario.engines.length);
  const pool = id64(loop.config.fleet.pools[0]!.id);
  const usages = scenario.frontends.map(() =>
    scenario.engines.map(({ id }): Counters => noEngineUsage(pool, id64(id))),
  );
  let sequence = 0;
  const offered = scenario.frontends.map(() => 0);
  const weights: (readonly number[])[] = [];
  const tables: Uint16Array[] = [];
  let pushedAt = Number.NEGATIVE_INFINITY;

  const push = (now: number) => {
    const next = scenario.frontends.map((_, frontend) => loop.weightsOf(scenario, frontend));
    const differs = next.some((row, frontend) =>
      row.some((weight, engine) => Math.abs(weight - (weights[frontend]?.[engine] ?? 0)) > PUSHED_DIFFERENCE),
    );
    if (!differs || now - pushedAt < loop.config.server.edsIntervalSeconds) return;
    pushedAt = now;
    next.forEach((row, frontend) => {
      weights[frontend] = row;
      tables[frontend] = maglev.map(row);
    });
  };
  const report = (frontend: number): UsageReport => ({
    vms: [
      {
        ...noVmUsage(1n, ++sequence),
        pools: [{ ...noPoolUsage(pool), offered: offered[frontend]! }],
        engines: usages[frontend]!.map((usage) => ({ ...usage })),
      },
    ],
  });

  await loop.step(wallMs(0));
  push(0);
  return {
    id: 'native-maglev',
    decide({ frontend, conversation, clientRetries }) {
      if (clientRetries === 0) offered[frontend]!++;
      const table = tables[frontend]!;
      // Envoy skips hosts that its health checks hold for dead by hashing on.
      for (let attempt = 0; attempt < 16; attempt++) {
        const engine = table[mix(conversation.hash, attempt) % table.length]!;
        if (!local.ready[engine]) continue;
        usages[frontend]![engine]!.planned++;
        return [engine, table[mix(conversation.hash, attempt + 16) % table.length]!];
      }
      return [];
    },
    ended({ frontend }, engine, _now, outcome) {
      const usage = usages[frontend]![engine]!;
      usage.ended++;
      if (outcome === 'answered') usage.status2xx++;
      if (outcome === 'failed') usage.failures++;
    },
    observe: () => ({ reports: offered.map((_, frontend) => report(frontend)), up: [...local.ready] }),
    async update(_telemetry, now, observed) {
      const { reports, up } = observed as { reports: UsageReport[]; up: boolean[] };
      const atMs = wallMs(now);
      scenario.frontends.forEach(({ id }, index) => {
        loop.report(id, reports[index]!, atMs);
      });
      scenario.engines.forEach(({ id }, index) => {
        for (let probe = 0; probe < 2; probe++) loop.probe(id, addressOf(index), up[index]!, atMs);
      });
      await loop.step(atMs);
      push(now);
    },
    weights: (frontend) => weights[frontend],
    close: () => loop.close(),
  };
};

type Counters = { -readonly [Name in keyof EngineUsage]: EngineUsage[Name] };
