import { fittedProfile, slowed } from '../fitted-profile.js';
import { exampleSizes } from '../load/conversations.js';
import { mean } from '../random.js';
import type { Addresses } from './addresses.js';
import { conversations, engines, frontends, MODEL, rttMs, SCALE } from './scenario.js';

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
    profiles: Object.fromEntries(engines.map(({ kind }) => [kind, slowed(fittedProfile(kind)!, 1 / SCALE)])),
    demand: Object.fromEntries(frontends.map(({ id, requestsPerSecond }) => [id, demand(requestsPerSecond)])),
    policy: { targetUtilization: 0.9, maxUtilization: 1 },
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
