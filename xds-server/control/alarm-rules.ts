import type { Fleet } from '../fleet/fleet.js';
import type { Plan } from '../plan/plan.js';
import type { ReplicaHealth } from '../signals/replica-health.js';
import type { SignalsView } from '../signals/signals.js';
import type { NodeView } from '../xds/index.js';

/** Alarms of one kind: a message for each name. */
export type Messages = ReadonlyMap<string, string>;

export function lostPools({ heldPools }: SignalsView): Messages {
  return new Map(
    heldPools.map((id) => [id, `all replicas of pool ${id} seem lost; the last ones are kept in use`]),
  );
}

export function silentFrontends(view: SignalsView): Messages {
  return new Map(
    view.silentFrontends.map(({ frontendId }) => [
      frontendId,
      `no Envoy of frontend ${frontendId} reports; its demand is held`,
    ]),
  );
}

export function failingEngines({ vetoes }: SignalsView): Messages {
  return new Map(
    [...vetoes].map(([id, { failed }]) => [
      id,
      `frontends saw ${failed} failures and no answer of engine ${id}; it is left out for a while`,
    ]),
  );
}

export function downReplicas(fleet: Fleet, health: (address: string) => ReplicaHealth): Messages {
  return new Map(
    fleet.engines.flatMap((engine) =>
      engine.endpoints.flatMap((address): [string, string][] => {
        const { state, detail } = health(address);
        return state === 'down' ? [[address, `replica ${address} of engine ${engine.id}: ${detail}`]] : [];
      }),
    ),
  );
}

export function shedding(plan: Plan | null): Messages {
  return new Map(
    (plan?.rows ?? []).flatMap(({ frontendId, poolId, demandRps, shed }): [string, string][] => {
      const fraction = Math.max(0, ...shed.map((entry) => entry.fraction));
      if (fraction === 0) return [];
      const refused = `${(fraction * 100).toFixed(1)} % of ${demandRps.toFixed(1)} requests/s`;
      return [
        [
          `${frontendId}/${poolId}`,
          `demand above capacity: ${refused} from ${frontendId} to ${poolId} are refused`,
        ],
      ];
    }),
  );
}

export function rejections(nodes: readonly NodeView[]): Messages {
  return new Map(
    nodes.flatMap(({ nodeId, types }) =>
      Object.entries(types).flatMap(([typeUrl, { status, rejection }]): [string, string][] => {
        if (status !== 'rejected' || rejection === null) return [];
        const type = typeUrl.slice(typeUrl.lastIndexOf('.') + 1);
        return [[`${nodeId}/${type}`, `Envoy ${nodeId} rejects ${type}: ${rejection.reason}`]];
      }),
    ),
  );
}

export function lackingEnvoys(nodes: readonly NodeView[]): Messages {
  return new Map(
    nodes.flatMap(({ nodeId, shortcomings }): [string, string][] =>
      shortcomings.length === 0 ? [] : [[nodeId, `Envoy ${nodeId}: ${shortcomings.join('; ')}`]],
    ),
  );
}
