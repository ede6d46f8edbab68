import type { Metric, MetricValueWithName } from 'prom-client';
import { FIRST_TOKEN_BOUNDS } from '../../../wire/usage-report.js';
import type { AnswerTimes } from '../../signals/usage/usage-totals.js';
import type { ShownServer } from '../shown-server.js';
import type { Registers } from './gauge.js';

type Values = MetricValueWithName<string>[];

/** Latencies as filters measured them, per (frontend, engine), since the server started. */
export function registerLatencies(server: ShownServer, registers: Registers): void {
  register(
    registers,
    'histogram',
    'wardrop_first_token_seconds',
    'Time from the request to the first token of streamed answers.',
    (name) => firstTokens(server, name),
  );
  register(
    registers,
    'summary',
    'wardrop_whole_answer_seconds',
    'Time from the request to the end of answers that are not streamed.',
    (name) =>
      sums(server, name, ({ wholeSecondsSum, wholeCount }) => ({ sum: wholeSecondsSum, count: wholeCount })),
  );
  register(
    registers,
    'summary',
    'wardrop_token_gap_seconds',
    'Time between tokens of streamed answers, for each token after the first.',
    (name) =>
      sums(server, name, ({ paceSecondsSum, paceTokens }) => ({ sum: paceSecondsSum, count: paceTokens })),
  );
}

/** Of what is counted elsewhere; the classes of prom-client only observe values one by one. */
function register(
  registers: Registers,
  type: 'histogram' | 'summary',
  name: string,
  help: string,
  read: (name: string) => Values,
): void {
  const get = async () => ({ name, help, type, aggregator: 'sum', values: read(name) });
  const metric = { name, help, get, reset: () => undefined } as unknown as Metric;
  for (const registry of registers) registry.registerMetric(metric);
}

function firstTokens(server: ShownServer, name: string): Values {
  const { latencies } = server.signals.totals;
  const buckets = latencies.flatMap(({ frontendId, engineId, firstTokens: counts }) => {
    let below = 0;
    return counts.map((count, at) => {
      below += count;
      const le = String(FIRST_TOKEN_BOUNDS[at] ?? '+Inf');
      return {
        metricName: `${name}_bucket`,
        labels: { frontend: frontendId, engine: engineId, le },
        value: below,
      };
    });
  });
  const rest = sums(server, name, ({ firstTokenSecondsSum, firstTokenCount }) => ({
    sum: firstTokenSecondsSum,
    count: firstTokenCount,
  }));
  return [...buckets, ...rest];
}

/** Sums and counts over pools, where there are any. */
function sums(
  server: ShownServer,
  name: string,
  read: (times: AnswerTimes) => { sum: number; count: number },
): Values {
  return server.signals.totals.times.flatMap((times) => {
    const { sum, count } = read(times);
    if (count === 0) return [];
    const labels = { frontend: times.frontendId, engine: times.engineId };
    return [
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  });
}
