// What a VM takes of Envoy's memory, code and bookkeeping of V8 included: Envoys with one worker and with four, with the
// filter and without, so that what every Envoy and every worker takes anyway cancels out.

import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { Child } from '../../simulator/demo/children.js';
import { encodeFilterConfig } from '../../wire/filter-config.js';
import { SYNC_CLUSTER, SYNC_SNAPSHOT_HEADER } from '../../wire/names.js';
import { smallBootstrap } from './envoy-config.js';
import { linearMemories } from './linear-memory.js';
import { runLoad } from './load.js';
import { largeSnapshot } from './memory.js';
import { FRONTEND_ID } from './modules.js';
import { type Estimate, estimate, median } from './statistics.js';
import { headerLoad } from './variants.js';
import type { World } from './world.js';

const WORKERS = [1, 4] as const;
const CONNECTIONS_PER_WORKER = 32;
/** Snapshots are awaited this long. */
const PATIENCE_MS = 20_000;
/** As long as the control server holds a call. */
const HOLD_MS = 500;
const VERSION = 2;

/** Resident MiB that a further VM adds to an Envoy, and linear MiB of its memory. */
export interface ResidentMemory {
  readonly snapshotBytes: number;
  /** With a snapshot installed, before the first request. */
  readonly idle: Estimate;
  readonly loaded: Estimate;
  /** What the filter adds to an Envoy with one worker, whose main thread has a VM, too. */
  readonly first: Estimate;
  readonly linear: number;
}

interface Resident {
  readonly idle: number;
  readonly loaded: number;
}

/** Measures so many rounds, with so many requests for each worker. */
export async function measureResident(
  world: World,
  rounds: number,
  requestsPerWorker: number,
  signal: AbortSignal,
): Promise<ResidentMemory> {
  const snapshot = largeSnapshot(VERSION);
  const server = await serveSnapshot(snapshot, world.ports.smallSync);
  const measured: Record<'on1' | 'on4' | 'off1' | 'off4', Resident>[] = [];
  let linear = 0;
  const measure = async (workers: number, withFilter: boolean): Promise<Resident> => {
    const bootstrap = smallBootstrap(
      world.ports,
      withFilter ? filterConfiguration() : undefined,
      SYNC_CLUSTER,
    );
    const admin = `http://127.0.0.1:${world.ports.smallAdmin}`;
    const envoy = await world.startEnvoy(bootstrap, workers, `${admin}/ready`);
    try {
      if (withFilter) await installed(admin, workers + 1, signal);
      const idle = residentMib(envoy);
      await runLoad(world.loadCommand, {
        ...headerLoad(world.ports.small),
        requests: requestsPerWorker * workers,
        connections: CONNECTIONS_PER_WORKER * workers,
        chunks: 0,
      });
      if (withFilter) linear = Math.max(...linearMemories(envoy.pid)) / 2 ** 20;
      return { idle, loaded: residentMib(envoy) };
    } finally {
      await envoy.stop();
    }
  };
  try {
    for (let round = 0; round < rounds; round++) {
      const [few, many] = WORKERS;
      measured.push({
        off1: await measure(few, false),
        on1: await measure(few, true),
        off4: await measure(many, false),
        on4: await measure(many, true),
      });
    }
  } finally {
    server.closeAllConnections();
    server.close();
  }
  const added = WORKERS[1] - WORKERS[0];
  const perVm = (when: keyof Resident) =>
    estimate(rounds, (chosen) =>
      median(
        chosen.map((at) => {
          const { on1, on4, off1, off4 } = measured[at]!;
          return (on4[when] - on1[when] - (off4[when] - off1[when])) / added;
        }),
      ),
    );
  return {
    snapshotBytes: snapshot.length,
    idle: perVm('idle'),
    loaded: perVm('loaded'),
    first: estimate(rounds, (chosen) =>
      median(chosen.map((at) => measured[at]!.on1.idle - measured[at]!.off1.idle)),
    ),
    linear,
  };
}

function filterConfiguration(): string {
  return encodeFilterConfig({
    frontendId: FRONTEND_ID,
    readBodies: true,
    placement: true,
    tenantHeader: 'x-tenant',
  });
}

/** In place of a control server: the one snapshot, then nothing new. */
async function serveSnapshot(snapshot: Uint8Array, port: number): Promise<Server> {
  const server = createServer((request, response) => {
    request.resume();
    const known = request.headers[SYNC_SNAPSHOT_HEADER] === `${VERSION}`;
    if (known) setTimeout(() => response.writeHead(304).end(), HOLD_MS);
    else response.writeHead(200).end(snapshot);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return server;
}

/** Waits until so many VMs have installed the snapshot. */
async function installed(admin: string, vms: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    const text = await (await fetch(`${admin}/stats?filter=wardrop_snapshot_installs`)).text();
    if (Number(text.match(/: (\d+)/)?.[1]) >= vms) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not all of ${vms} VMs have installed the snapshot`);
}

function residentMib({ pid }: Child): number {
  return residentIn(readFileSync(`/proc/${pid}/status`, 'utf8')) / 1024;
}

/** KiB, as a status file has them. */
export function residentIn(status: string): number {
  return Number(status.match(/^VmRSS:\s+(\d+) kB$/m)![1]);
}
