import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { exampleSizes } from '../load/conversations.js';
import { mean } from '../random.js';
import type { Addresses } from './addresses.js';
import { conversations, engines, frontends, MODEL, rttMs, SCALE } from './scenario.js';

/** Root of the package, from the folder that the build puts this file in. */
const ROOT = new URL('../../../', import.meta.url);

/** Beside the configuration. */
export const STATE_FILE = 'state.json';

/** The configuration of the control server, as an operator would write it for this fleet. */
export function fleetConfig(addresses: Addresses): object {
  return {
    server: {
      xds: { listen: addresses.xds },
      sync: { listen: addresses.sync },
      admin: { listen: addresses.admin },
      stateFile: STATE_FILE,
    },
    frontends: frontends.map(({ id }) => ({ id, region: id, listen: addresses.frontend[id] })),
    engines: engines.map(({ id, region, kind }) => ({
      id,
      region,
      models: [MODEL],
      profile: kind,
      endpoints: [addresses.engine[id]],
      metrics: { kind: 'vllm' },
    })),
    network: { rttMs },
    profiles: Object.assign({}, ...[...new Set(engines.map(({ kind }) => kind))].map(profileOf)),
    demand: Object.fromEntries(frontends.map(({ id, requestsPerSecond }) => [id, demand(requestsPerSecond)])),
    policy: { targetUtilization: 0.9, maxUtilization: 1 },
  };
}

interface ProfileConfig {
  readonly work: Record<string, number>;
  readonly ttft: Record<string, number>;
  readonly tbot: { readonly baseSeconds: number; readonly kappa: number };
  readonly maxFittedRho: number;
}

/** What `wardrop fit` made of a benchmark of this engine kind. */
function profileOf(kind: string): Record<string, ProfileConfig> {
  const text = readFileSync(new URL(`simulator/profiles/${kind}.yaml`, ROOT), 'utf8');
  const profile = (parse(text) as { profiles: Record<string, ProfileConfig> }).profiles[kind]!;
  const slower = (times: Record<string, number>) =>
    Object.fromEntries(Object.entries(times).map(([name, seconds]) => [name, seconds / SCALE]));
  const { work, ttft, tbot, maxFittedRho } = profile;
  return {
    [kind]: {
      work: slower(work),
      ttft: slower(ttft),
      tbot: { ...tbot, baseSeconds: tbot.baseSeconds / SCALE },
      maxFittedRho,
    },
  };
}

/** What the operator expects until it is measured. */
function demand(requestsPerSecond: number): object {
  const { turns, turnGapSeconds } = conversations;
  return {
    requestsPerSecond,
    ...exampleSizes,
    followUpShare: 1 - 1 / mean(turns),
    turnGapSeconds: mean(turnGapSeconds),
  };
}
