import { id64 } from '../../../wire/hash.js';
import {
  type EngineUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type UsageReport,
} from '../../../wire/usage-report.js';
import type { Config } from '../../config/config.js';
import { loadConfig } from '../../config/load.js';
import type { ProbeResult } from '../readiness/replica-health.js';
import type { Signals } from '../signals.js';

// Engines of one replica each that serve the model `m`, and frontends that are heard of by one Envoy each.

export const ready: ProbeResult = { ok: true };
export const refused: ProbeResult = { ok: false, kind: 'refused', detail: 'connection refused' };

/** A profile of ten requests per second that knows latencies, too. */
export const WITH_LATENCY =
  '{work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, queueSeconds: 0.01}, tbot: {baseSeconds: 0.01, kappa: 0.5}, maxFittedRho: 0.95}';

export interface OneModel {
  /** What frontend `f` is expected to ask for. */
  readonly rps?: number;
  /** In YAML, as `profile`. */
  readonly policy?: string;
  readonly profile?: string;
  readonly frontendIds?: readonly string[];
}

export function configOf(
  engineIds: readonly string[],
  { rps = 10, policy = '{}', profile = '{requestsPerSecond: 10}', frontendIds = ['f'] }: OneModel = {},
): Config {
  const engines = engineIds.map(
    (id, index) => `{id: ${id}, region: r, models: [m], profile: p, endpoints: [10.0.0.${index + 1}:80]}`,
  );
  return loadConfig('/none/fleet.yaml', () =>
    [
      `frontends: [${frontendIds.map((id) => `{id: ${id}, region: r}`).join(', ')}]`,
      `engines: [${engines.join(', ')}]`,
      `profiles: {p: ${profile}}`,
      `demand: {f: {requestsPerSecond: ${rps}, promptTokens: 100, outputTokens: 20}}`,
      `policy: ${policy}`,
    ].join('\n'),
  );
}

let sequence = 0;

/** What one VM has counted: requests for the model, and what it knows of engines. */
export function reportOf(
  offered: number,
  engines: Readonly<Record<string, Partial<EngineUsage>>> = {},
): UsageReport {
  return {
    vms: [
      {
        ...noVmUsage(1n, ++sequence),
        pools: [{ ...noPoolUsage(id64('m')), offered }],
        engines: Object.entries(engines).map(([id, usage]) => ({
          ...noEngineUsage(id64('m'), id64(id)),
          ...usage,
        })),
        replicas: Object.entries(engines).map(([id, { planned = 0, ended = 0 }]) => ({
          engine: id64(id),
          replica: id64(`${id} 1`),
          sent: planned,
          ended,
        })),
      },
    ],
  };
}

/** Which replicas are ready, by engine. */
export function readyOf(signals: Signals, nowMs: number): Record<string, boolean[]> {
  return Object.fromEntries(
    signals.evaluate(nowMs).state.engines.map(({ id, replicas }) => [id, replicas.map(({ ready }) => ready)]),
  );
}
