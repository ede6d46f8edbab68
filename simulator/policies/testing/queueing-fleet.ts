import { id64 } from '../../../wire/hash.js';
import {
  type EngineUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
} from '../../../wire/usage-report.js';
import { loadConfig } from '../../../xds-server/config/load.js';
import type { SignalsView } from '../../../xds-server/signals/signals.js';
import { Random } from '../../random.js';
import type { Scenario } from '../../scenario.js';
import { addressOf, ControlLoop, EPOCH_MS, wallMs } from '../control-loop.js';

const STEP_SECONDS = 0.5;

/** An engine that serves first come, first served. */
export interface QueueingEngine {
  readonly id: string;
  readonly replicas: number;
  readonly rttSeconds: number;
  /** Requests that each replica serves at a time, and for how long each. */
  readonly slots: (second: number) => number;
  readonly serviceSeconds: (second: number) => number;
  readonly hasPage?: boolean;
}

export interface QueueingFleet {
  readonly engines: readonly QueueingEngine[];
  readonly requestsPerSecond: number;
  /** An entry of `profiles`; all engines have it. */
  readonly profile: object;
  readonly seed?: number;
}

/** What could be seen every half second. */
export interface Sample {
  readonly second: number;
  /** By engine. */
  readonly weights: readonly number[];
  readonly inFlight: readonly number[];
  readonly view: SignalsView;
}

interface Queue {
  /** When each slot of each replica is free. */
  readonly free: number[];
  /** Ends of requests under way. */
  ends: { readonly at: number; readonly seconds: number }[];
  sent: number;
  ended: number;
  wholeSecondsSum: number;
}

/**
 * The control loop of Wardrop with engines that are queues, one frontend, and requests that come by chance. Answers are
 * whole.
 */
export async function runQueueingFleet(
  { engines, requestsPerSecond, profile, seed = 1 }: QueueingFleet,
  seconds: number,
): Promise<readonly Sample[]> {
  const scenario = scenarioOf(engines, requestsPerSecond, profile);
  const loop = new ControlLoop(scenario);
  const random = new Random(seed, 'arrivals');
  const queues = engines.map((): Queue => ({ free: [], ends: [], sent: 0, ended: 0, wholeSecondsSum: 0 }));
  const samples: Sample[] = [];
  await loop.step(EPOCH_MS);
  let offered = 0;
  let next = random.exponential(1 / requestsPerSecond);
  for (let step = 1; step <= seconds / STEP_SECONDS; step++) {
    const second = step * STEP_SECONDS;
    const weights = weightsOf(loop, engines);
    for (; next < second; next += random.exponential(1 / requestsPerSecond)) {
      offered++;
      if (random.unit() < (loop.plan!.rows[0]!.shed[0]?.fraction ?? 0)) continue;
      serve(queues, engines, pick(weights, engines, loop, random), next, random);
    }
    queues.forEach((queue) => {
      for (const end of queue.ends) {
        if (end.at > second) continue;
        queue.ended++;
        queue.wholeSecondsSum += end.seconds;
      }
      queue.ends = queue.ends.filter(({ at }) => at > second);
    });
    const atMs = wallMs(second);
    loop.report(0, reportOf(step, offered, engines, queues), atMs);
    if (engines.some(({ hasPage }) => hasPage) && step % 4 === 0)
      loop.readPages(
        engines.flatMap((engine, at) => {
          const running = Math.min(queues[at]!.ends.length, engine.slots(second) * engine.replicas);
          const waiting = queues[at]!.ends.length - running;
          return Array.from({ length: engine.replicas }, () => ({
            running: running / engine.replicas,
            waiting: waiting / engine.replicas,
          }));
        }),
        atMs,
      );
    await loop.step(atMs);
    samples.push({
      second,
      weights: weightsOf(loop, engines),
      inFlight: queues.map(({ ends }) => ends.length),
      view: loop.view,
    });
  }
  await loop.close();
  return samples;
}

function serve(
  queues: readonly Queue[],
  engines: readonly QueueingEngine[],
  at: number,
  now: number,
  random: Random,
): void {
  const { replicas, rttSeconds, slots, serviceSeconds } = engines[at]!;
  const queue = queues[at]!;
  const replica = random.integer({ min: 0, max: replicas - 1 });
  const arrives = now + rttSeconds / 2;
  let best = -1;
  for (let slot = 0; slot < slots(now); slot++) {
    const index = slot * replicas + replica;
    queue.free[index] ??= 0;
    if (best < 0 || queue.free[index]! < queue.free[best]!) best = index;
  }
  const begins = Math.max(arrives, queue.free[best]!);
  queue.free[best] = begins + serviceSeconds(begins);
  const ends = queue.free[best]! + rttSeconds / 2;
  queue.sent++;
  queue.ends.push({ at: ends, seconds: ends - now });
}

function pick(
  weights: readonly number[],
  engines: readonly QueueingEngine[],
  loop: ControlLoop,
  random: Random,
): number {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  let at = 0;
  for (let point = random.unit() * sum - weights[0]!; point >= 0 && at < weights.length - 1; )
    point -= weights[++at]!;
  const fraction = loop.relief.engines.get(engines[at]!.id) ?? 0;
  return random.unit() < fraction ? (at + 1) % engines.length : at;
}

function weightsOf(loop: ControlLoop, engines: readonly QueueingEngine[]): readonly number[] {
  const row = loop.plan!.rows[0]!;
  return engines.map(({ id }) => row.weights.find(({ engineId }) => engineId === id)?.weight ?? 0);
}

function reportOf(
  sequence: number,
  offered: number,
  engines: readonly QueueingEngine[],
  queues: readonly Queue[],
): UsageReport {
  const pool = id64('m');
  return {
    vms: [
      {
        ...noVmUsage(1n, sequence),
        pools: [{ ...noPoolUsage(pool), offered }],
        engines: engines.map(({ id }, at): EngineUsage => {
          const { sent, ended, wholeSecondsSum } = queues[at]!;
          const counts = { planned: sent, ended, status2xx: ended, wholeCount: ended, wholeSecondsSum };
          return { ...noEngineUsage(pool, id64(id)), ...counts };
        }),
        replicas: engines.map(({ id }, at) => {
          const { sent, ended } = queues[at]!;
          return { engine: id64(id), replica: id64(`${id}`), sent, ended };
        }),
      },
    ],
  };
}

function scenarioOf(
  engines: readonly QueueingEngine[],
  requestsPerSecond: number,
  profile: object,
): Scenario {
  const replicas = engines.flatMap(({ id, replicas }) =>
    Array.from({ length: replicas }, () => ({ engineId: id })),
  );
  const addresses = replicas.map((_, at) => addressOf({ engines: replicas as never }, at));
  const config = loadConfig('fleet.yaml', () =>
    JSON.stringify({
      frontends: [{ id: 'west', region: 'w' }],
      engines: engines.map(({ id, hasPage }) => ({
        id,
        region: 'w',
        models: ['m'],
        profile: 'p',
        slowStartSeconds: 0,
        endpoints: addresses.filter((_, at) => replicas[at]!.engineId === id),
        ...(hasPage ? { metrics: { kind: 'vllm' } } : {}),
      })),
      network: {
        rttMs: { west: Object.fromEntries(engines.map(({ id, rttSeconds }) => [id, 1_000 * rttSeconds])) },
      },
      profiles: { p: profile },
      demand: { west: { requestsPerSecond, promptTokens: 10, outputTokens: 5 } },
    }),
  );
  return {
    frontends: [{ id: 'west' }],
    engines: replicas,
    pools: [{ id: 'm', eligible: replicas.map(() => true) }],
    config,
  } as unknown as Scenario;
}
