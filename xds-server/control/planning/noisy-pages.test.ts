import { readFileSync } from 'node:fs';
import { afterAll, expect, it } from 'vitest';
import { id64 } from '../../../wire/hash.js';
import { noEngineUsage, noPoolUsage, noVmUsage, type UsageReport } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import { Optimizer } from '../../optimizer/index.js';
import { makePlan } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import { pieces, rowOf } from '../../plan/testing/planned-fleet.js';
import { Signals } from '../../signals/signals.js';

/** Requests on the pages of two equal engines, a line for every look; from line 80 on, e2 has fifty more waiting. */
const rows = readFileSync(new URL('testing/noisy-pages.csv', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => line.split(',').map(Number) as [number, number, number, number, number]);
const STEP_ROW = 80;
const ROUND_MS = 2_000;
/** Of these frontends, at each engine; the others on its page come from elsewhere. */
const OURS = 80;
const RPS = 50;

const config = loadConfig(
  '/none/fleet.yaml',
  () => `
frontends: [{id: f, region: r}]
engines:
- {id: e1, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"], metrics: {kind: vllm}}
- {id: e2, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:80"], metrics: {kind: vllm}}
profiles:
  p: {work: {secondsPerRequest: 0.01}, ttft: {baseSeconds: 1.5, queueSeconds: 0.01}, tbot: {}}
demand: {f: {requestsPerSecond: ${2 * RPS}, promptTokens: 20, outputTokens: 1}}
`,
);

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

function reportAt(seconds: number): UsageReport {
  const planned = RPS * seconds;
  const ended = Math.max(0, planned - OURS);
  return {
    vms: [
      {
        ...noVmUsage(1n, seconds + 1),
        pools: [{ ...noPoolUsage(id64('m')), offered: 2 * planned }],
        engines: ['e1', 'e2'].map((id) => ({ ...noEngineUsage(id64('m'), id64(id)), planned, ended })),
        replicas: ['e1', 'e2'].map((id) => ({
          engine: id64(id),
          replica: id64(`${id} 1`),
          sent: planned,
          ended,
        })),
      },
    ],
  };
}

it('noise on pages moves nothing; a lasting step moves as much as it should, within five looks and once', async () => {
  const signals = new Signals(config, [], 0);
  const plans: Plan[] = [];
  for (const [row, ...[waiting1, running1, waiting2, running2]] of rows) {
    const nowMs = (row + 1) * ROUND_MS;
    for (let seconds = 2 * row; seconds <= 2 * row + 2; seconds++)
      signals.acceptReport('f', 'n', reportAt(seconds), seconds * 1_000);
    const [e1, e2] = config.fleet.engines;
    signals.acceptLoad(e1!, waiting1 + running1, 1, nowMs);
    signals.acceptLoad(e2!, waiting2 + running2, 1, nowMs);
    const { state } = signals.evaluate(nowMs);
    const { profiles, policy } = config;
    const { plan } = await makePlan(
      optimizer,
      { previous: plans.at(-1) ?? null, state, profiles, policy },
      () => nowMs,
    );
    plans.push(plan!);
  }
  const weights = plans.map(
    (plan) => rowOf(plan, 'f').weights.find(({ engineId }) => engineId === 'e2')!.weight,
  );
  const moved = plans.slice(1).map((plan, at) =>
    pieces(rowOf(plans[at]!, 'f'), rowOf(plan, 'f'))
      .filter(({ before, after }) => before.ownerId !== after.ownerId)
      .reduce((sum, { share }) => sum + share, 0),
  );
  for (let row = 10; row < STEP_ROW; row++) {
    expect(Math.abs(weights[row]! - weights[row - 1]!)).toBeLessThanOrEqual(0.02);
    expect(moved[row - 1]).toBeLessThanOrEqual(0.02);
  }
  const before = weights[STEP_ROW - 1]!;
  const settled = weights.at(-1)!;
  expect(settled).toBeLessThan(0.9 * before);
  expect(weights[STEP_ROW + 4]).toBeLessThan(before);
  expect(Math.min(...weights)).toBeGreaterThan(settled - 0.1 * (before - settled));
});
