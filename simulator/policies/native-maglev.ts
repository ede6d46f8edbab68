import { id64 } from '../../wire/hash.js';
import {
  type EngineUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
} from '../../wire/usage-report.js';
import { envoysOf } from '../scenario.js';
import { choicesOf, MOST_ATTEMPTS, readyOf } from './choices.js';
import { addressOf, ControlLoop, wallMs } from './control-loop.js';
import { mix } from './hashing.js';
import { Maglev } from './maglev.js';
import type { PolicyFactory } from './policy.js';

/** As the control server does it: smaller changes of weights are not pushed, larger ones not all the time. */
const PUSHED_DIFFERENCE = 0.02;
/** Entries of the table that are looked at for one request. */
const PROBED_PLACES = 16;

/**
 * Envoy's own maglev over Wardrop's weights, as in `steering: native`: the plans are ours, the choice within them is a
 * table (Eisenbud et al., NSDI 2016) that is built anew with every push. No backups.
 */
export const nativeMaglev: PolicyFactory = async ({ scenario, local, control }) => {
  const loop = new ControlLoop(scenario);
  const maglev = new Maglev(scenario.engines.length);
  /** By class. */
  const poolIds = scenario.classes.map(({ pool }) => id64(loop.poolIds[pool]!));
  const frontendOf = envoysOf(scenario);
  const choices = choicesOf(scenario);
  const usages = frontendOf.map(() =>
    poolIds.map((pool) =>
      scenario.engines.map(({ engineId }) => ({ ...noEngineUsage(pool, id64(engineId)) }) as Counters),
    ),
  );
  /** By class, the first one that is the same to the control server: needs that the same engines meet share a pool. */
  const sameAs = scenario.classes.map(({ priority }, requestClass) =>
    scenario.classes.findIndex(
      (other, index) => poolIds[index] === poolIds[requestClass] && other.priority?.value === priority?.value,
    ),
  );
  const offered = frontendOf.map(() => poolIds.map(() => 0));
  /** By frontend and pool. */
  const weights: (readonly number[])[][] = [];
  /** Undefined where nobody may be sent anything. */
  const tables: (Uint16Array | undefined)[][] = [];
  let sequence = 0;
  let pushedAt = Number.NEGATIVE_INFINITY;

  const push = (now: number) => {
    const next = scenario.frontends.map((_, frontend) =>
      scenario.pools.map((_, pool) => loop.weightsOf(frontend, pool)),
    );
    const differs = next.flat().some((row, at) => {
      const last = weights.flat()[at];
      return row.some((weight, engine) => Math.abs(weight - (last?.[engine] ?? 0)) > PUSHED_DIFFERENCE);
    });
    if (!differs || now - pushedAt < loop.config.server.edsIntervalSeconds) return;
    pushedAt = now;
    next.forEach((rows, frontend) => {
      if (!control.reaches[frontend] && weights[frontend]) return;
      weights[frontend] = rows;
      tables[frontend] = rows.map((row) => (row.some((weight) => weight > 0) ? maglev.map(row) : undefined));
    });
  };
  const report = (envoy: number): UsageReport => ({
    vms: [
      {
        ...noVmUsage(1n, ++sequence),
        pools: scenario.classes.flatMap(({ priority }, requestClass) => {
          if (sameAs[requestClass] !== requestClass) return [];
          const usage = noPoolUsage(poolIds[requestClass]!, priority?.value);
          return [{ ...usage, offered: offered[envoy]![requestClass]! }];
        }),
        engines: merged(usages[envoy]!.flat()),
      },
    ],
  });

  await loop.step(wallMs(0));
  push(0);
  return {
    id: 'native-maglev',
    decide({ frontend, envoy, pool, conversation }) {
      const { requestClass } = conversation;
      offered[envoy]![sameAs[requestClass]!]!++;
      const table = tables[frontend]![pool];
      if (table === undefined) return [];
      // Envoy skips hosts that its health checks hold for dead, and those that were tried, by hashing on.
      const next = Array.from(
        { length: PROBED_PLACES },
        (_, at) => table[mix(conversation.hash, at) % table.length]!,
      );
      const ready = local.ready[frontend]!;
      const sharing = readyOf([...new Set(next)], ready);
      // Those without a weight are of the next priority, which takes over where all of the first are dead.
      const engines = (sharing.length > 0 ? sharing : readyOf(choices[frontend]![pool]!, ready)).slice(
        0,
        MOST_ATTEMPTS,
      );
      if (engines.length > 0) usages[envoy]![requestClass]![engines[0]!]!.planned++;
      return engines;
    },
    ended({ envoy, conversation }, engine, _now, outcome) {
      const usage = usages[envoy]![conversation.requestClass]![engine]!;
      usage.ended++;
      if (outcome === 'answered') usage.status2xx++;
      if (outcome === 'failed') usage.failures++;
    },
    observe: () => ({
      reports: frontendOf.map((frontend, envoy) => (control.reaches[frontend] ? report(envoy) : undefined)),
      up: [...control.ready],
    }),
    async update(_telemetry, now, observed) {
      const { reports, up } = observed as { reports: (UsageReport | undefined)[]; up: boolean[] };
      const atMs = wallMs(now);
      reports.forEach((usage, envoy) => {
        if (usage) loop.report(envoy, usage, atMs);
      });
      scenario.engines.forEach(({ engineId }, index) => {
        const address = addressOf(scenario, index);
        for (let probe = 0; probe < 2; probe++) loop.probe(engineId, address, up[index]!, atMs);
      });
      await loop.step(atMs);
      push(now);
    },
    weights: (frontend, pool) => weights[frontend]![pool],
    close: () => loop.close(),
  };
};

type Counters = { -readonly [Name in keyof EngineUsage]: EngineUsage[Name] };

/** Replicas of one engine are counted as one. */
function merged(usages: readonly Counters[]): Counters[] {
  const sums = new Map<string, Counters>();
  for (const usage of usages) {
    const key = `${usage.pool} ${usage.engine}`;
    const sum = sums.get(key);
    if (sum === undefined) {
      sums.set(key, { ...usage });
      continue;
    }
    sum.planned += usage.planned;
    sum.ended += usage.ended;
    sum.status2xx += usage.status2xx;
    sum.failures += usage.failures;
  }
  return [...sums.values()];
}
