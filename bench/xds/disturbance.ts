import { type PushOptions, PushWorld, sampleOf, typical } from './push.js';

export interface DisturbanceResult {
  readonly quietP99Ms: number;
  readonly quietLastMs: number;
  /** With clients that come and go, and others that stopped reading. */
  readonly disturbedP99Ms: number;
  readonly disturbedLastMs: number;
  readonly churning: number;
  readonly stuck: number;
  /** What the server's memory grew by while the stuck clients read nothing. */
  readonly rssGrowthMiB: number;
}

const CHURN_PERIOD_MS = 500;

/** Whether clients that come and go, or stop reading, delay the others. */
export async function measureDisturbance(
  options: PushOptions,
  { churning, stuck }: { readonly churning: number; readonly stuck: number },
): Promise<DisturbanceResult> {
  const world = await PushWorld.start(options);
  try {
    const samples = async () => {
      const list = [];
      for (let i = 0; i < options.pushes; i++) list.push(sampleOf(await world.push({ waitForAll: false })));
      return typical(list);
    };
    await world.push();
    const quiet = await samples();
    await world.openStuck(stuck);
    world.clients.send({ kind: 'churn', clients: churning, periodMs: CHURN_PERIOD_MS });
    await new Promise((resolve) => setTimeout(resolve, 2 * CHURN_PERIOD_MS));
    const before = process.memoryUsage.rss();
    const disturbed = await samples();
    const rssGrowthMiB = (process.memoryUsage.rss() - before) / 2 ** 20;
    return {
      quietP99Ms: quiet.p99,
      quietLastMs: quiet.last,
      disturbedP99Ms: disturbed.p99,
      disturbedLastMs: disturbed.last,
      churning,
      stuck,
      rssGrowthMiB,
    };
  } finally {
    await world.stop();
  }
}

/** Seconds until the server has forgotten clients whose process was stopped without a word. */
export async function measureFrozen(clients: number): Promise<number> {
  const size = { frontends: 1, clusters: 1, endpoints: 25 };
  const world = await PushWorld.start({ size, streams: clients, pushes: 0 });
  try {
    const startMs = performance.now();
    world.clients.signal('SIGSTOP');
    while (world.server.nodes().length > 0) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      if (performance.now() - startMs > 120_000)
        throw new Error('frozen clients are still listed after 120 s');
    }
    return (performance.now() - startMs) / 1000;
  } finally {
    await world.stop();
  }
}
