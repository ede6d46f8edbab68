import type { SnapshotView } from '../../../wire/snapshot-view.js';
import type { Config } from '../../config/config.js';
import { WardropError } from '../../errors.js';
import type { Address } from '../../fleet/fleet.js';
import type { EngineState } from '../../fleet/fleet-state.js';
import { snapshotWeights } from '../../plan/snapshot-weights.js';
import {
  buildResources,
  envoyNode,
  inlineSnapshot,
  type StaticResources,
  staticResources,
} from '../../xds/index.js';
import { envoyOptions } from '../publishing/envoy-options.js';

export interface StaticStart {
  readonly config: Config;
  /** Of the frontend that the Envoy belongs to. */
  readonly snapshot: SnapshotView;
  readonly wasmModule: Uint8Array;
  /** `major.minor.patch` of the Envoy: nobody asks it at its start. */
  readonly envoyVersion: string;
  /** Where this Envoy listens; default: the frontend's address. */
  readonly listen?: Address;
}

/**
 * Listener, clusters and endpoints of an Envoy that starts without a control server, with a snapshot in the filter's
 * configuration. Replicas are those of the snapshot.
 *
 * @throws {WardropError} WARDROP_CONFIG_INVALID when the snapshot has engines that the configuration lacks
 */
export function staticStart({
  config,
  snapshot,
  wasmModule,
  envoyVersion,
  listen,
}: StaticStart): StaticResources {
  const { frontendId } = snapshot;
  const engines = snapshot.engines.map(({ id, replicas }) => {
    const engine = config.fleet.engines.find((candidate) => candidate.id === id);
    if (engine === undefined) {
      throw new WardropError(
        'WARDROP_CONFIG_INVALID',
        `the snapshot has an engine ${JSON.stringify(id)} that the configuration lacks; use the control server's own`,
      );
    }
    return { ...engine, endpoints: replicas.map(({ address }) => address).sort() };
  });
  const pools = snapshot.pools.map((pool) => ({
    id: pool.id,
    model: pool.id,
    needs: [],
    engineIds: pool.engines.map((index) => engines[index]!.id),
  }));
  const options = envoyOptions(config, frontendId);
  const resources = buildResources({
    ...options,
    wasmModule,
    frontendId,
    fleet: {
      ...config.fleet,
      engines,
      pools,
      networkSeconds: config.fleet.frontends.map(() => engines.map(() => 0)),
    },
    plan: {
      rows: snapshot.pools.map((pool) => ({
        frontendId,
        poolId: pool.id,
        weights: snapshotWeights(pool, snapshot.engines),
      })),
    },
    engines: snapshot.engines.map(stateOf),
    filter: { ...options.filter, snapshot: inlineSnapshot(snapshot) },
  });
  return staticResources(resources.viewOf(envoyNode(envoyVersion, listen)));
}

function stateOf({ id, replicas }: SnapshotView['engines'][number]): EngineState {
  return { id, replicas, health: 1, ramp: 1, drain: 1, penalty: 0, latencyFactor: 1 };
}
