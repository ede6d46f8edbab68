import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { PushWorld } from './push.js';

export interface LongRunResult {
  readonly pushes: number;
  readonly streams: number;
  /** Memory in use after a collection: after a tenth of the pushes, and at the end. */
  readonly earlyHeapMiB: number;
  readonly lateHeapMiB: number;
  readonly earlyRssMiB: number;
  readonly lateRssMiB: number;
}

/** Pushes of a day at this interval, one right after the other. */
export const pushesPerDay = (intervalSeconds: number) => Math.round(86_400 / intervalSeconds);

/** Memory of the server over many pushes to a few clients, a tenth of which come and go. */
export async function measureLongRun(pushes: number): Promise<LongRunResult> {
  const streams = 20;
  const world = await PushWorld.start({
    size: { frontends: 2, clusters: 4, endpoints: 50 },
    streams,
    pushes: 0,
  });
  try {
    world.clients.send({ kind: 'churn', clients: 2, periodMs: 100 });
    let early: NodeJS.MemoryUsage | undefined;
    for (let i = 1; i <= pushes; i++) {
      await world.push({ waitForAll: false });
      if (i === Math.ceil(pushes / 10)) early = collected();
    }
    const late = collected();
    return {
      pushes,
      streams,
      earlyHeapMiB: early!.heapUsed / 2 ** 20,
      lateHeapMiB: late.heapUsed / 2 ** 20,
      earlyRssMiB: early!.rss / 2 ** 20,
      lateRssMiB: late.rss / 2 ** 20,
    };
  } finally {
    await world.stop();
  }
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

function collected(): NodeJS.MemoryUsage {
  collect();
  collect();
  return process.memoryUsage();
}
