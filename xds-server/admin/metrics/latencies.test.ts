import { expect, it } from 'vitest';
import { FIRST_TOKEN_BOUNDS, noEngineUsage } from '../../../wire/usage-report.js';
import { UsageTotals } from '../../signals/usage/usage-totals.js';
import type { ShownServer } from '../shown-server.js';
import { familiesText } from './family.js';
import { latencyFamilies } from './latencies.js';

it('shows latencies of each frontend and engine over all pools, in cumulative buckets', () => {
  const totals = new UsageTotals();
  const usage = {
    ...noEngineUsage(1n, 2n),
    ...{ firstTokenSecondsSum: 0.75, firstTokenCount: 3, paceSecondsSum: 2, paceTokens: 100 },
  };
  for (const poolId of ['m', 'n']) totals.addEngine('west', poolId, 'a', usage);
  totals.addEngine('west', 'm', 'b', noEngineUsage(1n, 3n));
  const firstTokens = [1, 0, 3, ...FIRST_TOKEN_BOUNDS.slice(3).map(() => 0), 2];
  totals.addLatency('west', 'a', { engine: 2n, firstTokens, paces: [] });
  const families = latencyFamilies({ signals: { totals } } as ShownServer);
  const lines = [...familiesText(families)].join('').split('\n');
  const [first, second, third] = FIRST_TOKEN_BOUNDS;
  expect(lines.filter((line) => line.startsWith('# TYPE'))).toEqual([
    '# TYPE wardrop_first_token_seconds histogram',
    '# TYPE wardrop_whole_answer_seconds summary',
    '# TYPE wardrop_token_gap_seconds summary',
  ]);
  for (const line of [
    `wardrop_first_token_seconds_bucket{frontend="west",engine="a",le="${first}"} 1`,
    `wardrop_first_token_seconds_bucket{frontend="west",engine="a",le="${second}"} 1`,
    `wardrop_first_token_seconds_bucket{frontend="west",engine="a",le="${third}"} 4`,
    'wardrop_first_token_seconds_bucket{frontend="west",engine="a",le="+Inf"} 6',
    'wardrop_first_token_seconds_sum{frontend="west",engine="a"} 1.5',
    'wardrop_first_token_seconds_count{frontend="west",engine="a"} 6',
    'wardrop_token_gap_seconds_sum{frontend="west",engine="a"} 4',
    'wardrop_token_gap_seconds_count{frontend="west",engine="a"} 200',
  ]) {
    expect(lines).toContain(line);
  }
  expect(lines.filter((line) => line.includes('engine="b"') || line.startsWith('wardrop_whole'))).toEqual([]);
});
