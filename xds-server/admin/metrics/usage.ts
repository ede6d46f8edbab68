import { Counter } from 'prom-client';
import type { ShownServer } from '../shown-server.js';
import type { Registers } from './gauge.js';
import { registerLatencies } from './latencies.js';

/** Counters of usage reports since the server started. */
export function registerUsage(server: ShownServer, registers: Registers): void {
  new Counter({
    name: 'wardrop_requests_total',
    help: 'Requests that filters counted, by what became of them.',
    labelNames: ['frontend', 'pool', 'what'],
    registers,
    collect() {
      this.reset();
      for (const total of server.signals.totals.pools) {
        const labels = { frontend: total.frontendId, pool: total.poolId };
        this.inc({ ...labels, what: 'offered' }, total.offered);
        this.inc({ ...labels, what: 'client_retry' }, total.clientRetries);
        this.inc({ ...labels, what: 'shed' }, total.shed);
        this.inc({ ...labels, what: 'unavailable' }, total.unavailable);
        this.inc({ ...labels, what: 'without_key' }, total.withoutKey);
      }
    },
  });
  new Counter({
    name: 'wardrop_engine_requests_total',
    help: 'Requests and attempts that filters counted per engine, by what became of them.',
    labelNames: ['frontend', 'pool', 'engine', 'what'],
    registers,
    collect() {
      this.reset();
      for (const total of server.signals.totals.engines) {
        const labels = { frontend: total.frontendId, pool: total.poolId, engine: total.engineId };
        this.inc({ ...labels, what: 'planned' }, total.planned);
        this.inc({ ...labels, what: 'diverted' }, total.diverted);
        this.inc({ ...labels, what: 'ended' }, total.ended);
        this.inc({ ...labels, what: 'failed_attempt' }, total.failures);
        this.inc({ ...labels, what: 'retried_attempt' }, total.retries);
        this.inc({ ...labels, what: '2xx' }, total.status2xx);
        this.inc({ ...labels, what: '4xx' }, total.status4xx);
        this.inc({ ...labels, what: '5xx' }, total.status5xx);
        this.inc({ ...labels, what: 'no_response' }, total.noResponse);
        this.inc({ ...labels, what: 'stalled' }, total.stalled);
        this.inc({ ...labels, what: 'broken' }, total.broken);
      }
    },
  });
  registerLatencies(server, registers);
}
