import { FIRST_TOKEN_BOUNDS } from '../../../wire/usage-report.js';
import type { AnswerTimes, LatencyTotals } from '../../signals/usage/usage-totals.js';
import type { ShownServer } from '../shown-server.js';
import { type Family, labelText, line } from './family.js';

/** Latencies as filters measured them, per (frontend, engine), since the server started. */
export function latencyFamilies(server: ShownServer): readonly Family[] {
  const firstToken = 'wardrop_first_token_seconds';
  const whole = 'wardrop_whole_answer_seconds';
  const gap = 'wardrop_token_gap_seconds';
  return [
    {
      name: firstToken,
      help: 'Time from the request to the first token of streamed answers.',
      type: 'histogram',
      *lines() {
        // All of one moment: the last bucket is the count.
        const latencies = [...server.signals.totals.latencies];
        const times = [...server.signals.totals.times];
        yield* buckets(latencies, firstToken);
        yield* sums(times, firstToken, ({ firstTokenSecondsSum, firstTokenCount }) => [
          firstTokenSecondsSum,
          firstTokenCount,
        ]);
      },
    },
    {
      name: whole,
      help: 'Time from the request to the end of answers that are not streamed.',
      type: 'summary',
      lines: () =>
        sums(server.signals.totals.times, whole, ({ wholeSecondsSum, wholeCount }) => [
          wholeSecondsSum,
          wholeCount,
        ]),
    },
    {
      name: gap,
      help: 'Time between tokens of streamed answers, for each token after the first.',
      type: 'summary',
      lines: () =>
        sums(server.signals.totals.times, gap, ({ paceSecondsSum, paceTokens }) => [
          paceSecondsSum,
          paceTokens,
        ]),
    },
  ];
}

function* buckets(latencies: Iterable<LatencyTotals>, name: string): Generator<string> {
  for (const { frontendId, engineId, firstTokens } of latencies) {
    const labels = labelText({ frontend: frontendId, engine: engineId });
    let below = 0;
    for (const [at, count] of firstTokens.entries()) {
      below += count;
      yield line(`${name}_bucket`, `${labels},le="${FIRST_TOKEN_BOUNDS[at] ?? '+Inf'}"`, below);
    }
  }
}

/** Sums and counts over pools, where there are any. */
function* sums(
  all: Iterable<AnswerTimes>,
  name: string,
  read: (times: AnswerTimes) => readonly [sum: number, count: number],
): Generator<string> {
  for (const times of all) {
    const [sum, count] = read(times);
    if (count === 0) continue;
    const labels = labelText({ frontend: times.frontendId, engine: times.engineId });
    yield line(`${name}_sum`, labels, sum) + line(`${name}_count`, labels, count);
  }
}
