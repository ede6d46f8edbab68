import type { Alarm } from '../../control/alarms/alarms.js';
import { effectiveCapacity } from '../../fleet/fleet-state.js';
import { plainRowsText } from '../../plan/fallback.js';
import type { Plan } from '../../plan/plan.js';
import type { EngineTraffic, FrontendTraffic } from '../../signals/usage/recent-traffic.js';
import { engineRemarks } from './engine-remarks.js';
import type { EngineView, EnvoyView, Overview } from './overview.js';
import { isFailing } from './traffic-text.js';

/** How a control server and its fleet are, in short. */
export interface Status {
  readonly atMs: number;
  readonly startedAtMs: number;
  /** Null before the first one is published. */
  readonly plan: PlanStatus | null;
  /** Address of the control server that makes the plans; null when this one does. */
  readonly plannedBy: string | null;
  /** Share of the keys of which decisions are followed. */
  readonly steered: number;
  readonly alarms: readonly Alarm[];
  readonly frontends: readonly FrontendStatus[];
  readonly engines: readonly EngineStatus[];
  readonly envoys: readonly EnvoyView[];
}

export interface PlanStatus {
  readonly id: string;
  readonly sequence: number;
  readonly createdAtMs: number;
  /** What is to be known of it where it is not all by a solve; null when it is. */
  readonly plain: string | null;
}

export interface FrontendStatus {
  readonly frontendId: string;
  /** Demand that plans are made for. */
  readonly requestsPerSecond: number;
  /** Where it comes from; several where its pools differ. */
  readonly sources: readonly string[];
  /** Envoys that are connected or fetch snapshots. */
  readonly envoys: number;
  readonly traffic: FrontendTraffic;
}

export interface EngineStatus {
  readonly engineId: string;
  /** Planned; null without a plan. */
  readonly utilization: number | null;
  /** In replicas. */
  readonly effectiveCapacity: number;
  readonly readyReplicas: number;
  readonly replicas: number;
  /** Requests there by the reports of Envoys; null while nobody reports. */
  readonly inFlight: number | null;
  readonly traffic: EngineTraffic;
  /** What keeps it below its capacity, such as a drain or a penalty. */
  readonly remarks: readonly string[];
}

export function serverStatus(overview: Overview): Status {
  const { atMs, startedAtMs, plan, plannedBy, steered, alarms, envoys } = overview;
  return {
    atMs,
    startedAtMs,
    plan: plan && planStatus(plan),
    plannedBy,
    steered,
    alarms,
    frontends: overview.frontends.map((frontend) => frontendStatus(overview, frontend)),
    engines: overview.engines.map((engine) => engineStatus(overview, engine)),
    envoys,
  };
}

function planStatus(plan: Plan): PlanStatus {
  const { id, sequence, createdAtMs } = plan;
  return { id, sequence, createdAtMs, plain: plainRowsText(plan) ?? null };
}

/** What is shown of one frontend. */
export function frontendStatus(
  { demands, envoys }: Overview,
  { id: frontendId, traffic }: Overview['frontends'][number],
): FrontendStatus {
  const own = demands.filter((demand) => demand.frontendId === frontendId);
  return {
    frontendId,
    requestsPerSecond: own.reduce((sum, { requestsPerSecond }) => sum + requestsPerSecond, 0),
    sources: [...new Set(own.map(({ source }) => source))].sort(),
    envoys: envoys.filter((envoy) => envoy.frontendId === frontendId).length,
    traffic,
  };
}

/** Whether there is something to say of an engine among many. */
export function isRemarkable({
  remarks,
  readyReplicas,
  replicas,
  utilization,
  traffic,
}: EngineStatus): boolean {
  return remarks.length > 0 || readyReplicas < replicas || (utilization ?? 0) >= 1 || isFailing(traffic);
}

/** What is shown of one engine. */
export function engineStatus({ plan }: Pick<Overview, 'plan'>, engine: EngineView): EngineStatus {
  const { state, inFlight, traffic } = engine;
  return {
    engineId: state.id,
    utilization: plan?.engines.find(({ engineId }) => engineId === state.id)?.rho ?? null,
    effectiveCapacity: effectiveCapacity(state),
    readyReplicas: state.replicas.filter(({ ready }) => ready).length,
    replicas: state.replicas.length,
    inFlight,
    traffic,
    remarks: engineRemarks(engine),
  };
}
