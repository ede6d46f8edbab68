import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { noFault } from '../../test/no-fault.js';
import { Publisher } from '../../xds-server/control/publishing/publisher.js';
import { engineStates } from '../../xds-server/fleet/testing/engine-states.js';
import { HASH_SPACE, type Plan } from '../../xds-server/plan/plan.js';
import { noRelief } from '../../xds-server/plan/protection/relief.js';
import { SnapshotBoard } from '../../xds-server/sync/snapshot-board.js';
import { XdsServer } from '../../xds-server/xds/index.js';
import { quantile } from '../filter/statistics.js';
import { type FleetSize, fleetOf, weightsAt } from './fleet.js';

/** Of one plan for all frontends, with no Envoy connected: medians, and the longest time that nothing else was done. */
export interface PublishingResult {
  readonly frontends: number;
  readonly engines: number;
  readonly cpuMs: number;
  readonly longestStallMs: number;
}

/** Publishes plans that differ in every weight, as the control server does, on its own thread. */
export async function measurePublishing(size: FleetSize, plans: number): Promise<PublishingResult> {
  const fleet = fleetOf(size);
  const engines = engineStates(fleet);
  const publisher = new Publisher({
    xds: new XdsServer({
      listen: '127.0.0.1:0',
      resolveFrontend: () => fleet.frontends[0]!.id,
      log: { info() {}, warn() {}, error() {} },
    }),
    board: new SnapshotBoard(Date.now),
    salt: () => 'bench',
    wasmModule: new Uint8Array([0]),
    envoy: (frontendId) => ({ filter: { frontendId } }),
    steered: () => 1,
    relief: () => noRelief,
    edsIntervalMs: () => 0,
    isNamedElsewhere: () => false,
    onFault: noFault,
    now: () => performance.now(),
  });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const cpu: number[] = [];
  for (let turn = 0; turn <= plans; turn++) {
    const plan = planAt(fleet, turn);
    await nextTurn();
    // The first one makes what is kept.
    if (turn > 0) delay.enable();
    const before = process.cpuUsage();
    publisher.publish({ plan, fleet, engines });
    await publisher.idle();
    delay.disable();
    const { user, system } = process.cpuUsage(before);
    if (turn > 0) cpu.push((user + system) / 1_000);
  }
  publisher.stop();
  return {
    frontends: fleet.frontends.length,
    engines: fleet.engines.length,
    cpuMs: quantile(
      cpu.sort((a, b) => a - b),
      0.5,
    ),
    longestStallMs: delay.max / 1e6,
  };
}

function planAt(fleet: ReturnType<typeof fleetOf>, turn: number): Plan {
  const rows = weightsAt(fleet, turn).rows.map((row) => {
    let start = 0;
    const segments = row.weights.map(({ engineId, weight }) => {
      const segment = { start: Math.floor(start * HASH_SPACE), ownerId: engineId, backupId: null };
      start += weight;
      return segment;
    });
    return { ...row, segments, demandRps: 1, retryRatio: 0, shed: [] };
  });
  const id = turn.toString(16).padStart(16, '0');
  return { id, sequence: turn + 1, createdAtMs: 0, rows, engines: [], objectiveSeconds: 0 };
}
