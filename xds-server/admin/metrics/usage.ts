import { groupBy, sum } from '../../collections.js';
import { rowKey } from '../../fleet/row-key.js';
import type { EngineTotals, PoolTotals } from '../../signals/usage/usage-totals.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, labelText, line } from './family.js';
import { latencyFamilies } from './latencies.js';

const OF_POOLS = [
  ['offered', 'offered'],
  ['client_retry', 'clientRetries'],
  ['shed', 'shed'],
  ['unavailable', 'unavailable'],
  ['without_key', 'withoutKey'],
] as const satisfies readonly (readonly [string, keyof PoolTotals])[];

const OF_ENGINES = [
  ['planned', 'planned'],
  ['diverted', 'diverted'],
  ['ended', 'ended'],
  ['failed_attempt', 'failures'],
  ['retried_attempt', 'retries'],
  ['2xx', 'status2xx'],
  ['4xx', 'status4xx'],
  ['5xx', 'status5xx'],
  ['no_response', 'noResponse'],
  ['stalled', 'stalled'],
  ['broken', 'broken'],
] as const satisfies readonly (readonly [string, keyof EngineTotals])[];

/** Counters of usage reports since the server started. */
export function usageFamilies(server: ShownServer): readonly Family[] {
  return [requests(server), engineRequests(server), ...latencyFamilies(server)];
}

/** Over all priorities. */
function requests(server: ShownServer): Family {
  const name = 'wardrop_requests_total';
  return {
    ...{ name, help: 'Requests that filters counted, by what became of them.', type: 'counter' },
    *lines() {
      for (const classes of groupBy(server.signals.totals.pools, rowKey).values()) {
        const { frontendId, poolId } = classes[0]!;
        const labels = labelText({ frontend: frontendId, pool: poolId });
        for (const [what, count] of OF_POOLS) {
          yield line(name, `${labels},what="${what}"`, sum(classes.map((totals) => totals[count])));
        }
      }
    },
  };
}

function engineRequests(server: ShownServer): Family {
  const name = 'wardrop_engine_requests_total';
  return {
    name,
    help: 'Requests and attempts that filters counted per engine, by what became of them.',
    type: 'counter',
    *lines() {
      for (const totals of server.signals.totals.engines) {
        const { frontendId, poolId, engineId } = totals;
        const labels = labelText({ frontend: frontendId, pool: poolId, engine: engineId });
        for (const [what, count] of OF_ENGINES) yield line(name, `${labels},what="${what}"`, totals[count]);
      }
    },
  };
}
