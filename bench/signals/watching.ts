import { type ChildProcess, fork } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { noFault } from '../../test/no-fault.js';
import type { Fleet } from '../../xds-server/fleet/fleet.js';
import { EngineWatch } from '../../xds-server/signals/pages/engine-watch.js';
import { unknownHealth } from '../../xds-server/signals/readiness/replica-health.js';

/** First pages are read by just-compiled code over new connections; they are not counted. */
const WARMUP_MS = 5_000;

export interface WatchingCost {
  /** Processor seconds of this process per second, 1 being a whole core. */
  readonly cores: number;
  /** Pages that were read per second; with the interval of 2 s, half of the replicas when nothing is late. */
  readonly pagesPerSecond: number;
}

/** Serves these pages from another process until `stop`. */
export async function startReplicas(
  count: number,
  page: string,
): Promise<{ ports: readonly number[]; stop(): void }> {
  const child: ChildProcess = fork(new URL('replicas.js', import.meta.url));
  const ports = await new Promise<readonly number[]>((resolve, reject) => {
    child.once('message', (message) => resolve(message as readonly number[]));
    child.once('exit', (code) => reject(new Error(`the process of the replicas ended with ${code}`)));
    child.send([count, page]);
  });
  return { ports, stop: () => child.kill() };
}

/** Watches the replicas as the control server does and measures the processor time of that. */
export async function measureWatching(
  ports: readonly number[],
  kind: 'vllm' | 'none',
  seconds: number,
): Promise<WatchingCost> {
  const watch = new EngineWatch(
    () => ({ ...unknownHealth(0), state: 'up' }),
    () => undefined,
    noFault,
  );
  watch.watch(fleetOf(ports, kind));
  try {
    await sleep(WARMUP_MS);
    const pagesBefore = newest(watch);
    const cpu = process.cpuUsage();
    const startedMs = performance.now();
    let pages = 0;
    let last = pagesBefore;
    while (performance.now() - startedMs < seconds * 1_000) {
      await sleep(500);
      const now = newest(watch);
      pages += now.filter((atMs, replica) => atMs !== last[replica]).length;
      last = now;
    }
    const { user, system } = process.cpuUsage(cpu);
    const elapsed = (performance.now() - startedMs) / 1_000;
    return { cores: (user + system) / 1e6 / elapsed, pagesPerSecond: pages / elapsed };
  } finally {
    await watch.stop();
  }
}

/** When each replica's page was last read. */
function newest(watch: EngineWatch): readonly number[] {
  return [...watch.readings.values()].map(({ signals }) => signals.get('running')?.atMs ?? 0);
}

function fleetOf(ports: readonly number[], kind: 'vllm' | 'none'): Fleet {
  const id = 'engine';
  return {
    frontends: [],
    engines: [
      {
        id,
        region: 'r',
        models: ['m'],
        labels: {},
        profile: 'p',
        endpoints: ports.map((port) => `127.0.0.1:${port}`),
        metrics: { kind, path: '/metrics' },
        healthPath: '/health',
      },
    ],
    pools: [],
    networkSeconds: [],
  };
}
