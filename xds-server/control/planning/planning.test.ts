import { afterAll, expect, it } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { WardropError } from '../../errors.js';
import { Optimizer } from '../../optimizer/index.js';
import { optimizerInput, type PlanInput } from '../../plan/make-plan.js';
import { Signals } from '../../signals/signals.js';
import { Alarms } from '../alarms/alarms.js';
import { Recorders } from '../recording/recorders.js';
import { Planning, type PlanningOptions } from './planning.js';
import { SolveSchedule } from './solve-schedule.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

/** One frontend and two engines, of which the operator wants both. */
function stateOf(readyIds: readonly string[]): Omit<PlanInput, 'previous'> {
  const config = loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: west, region: w}]',
      'engines:',
      '- {id: a, region: w, models: [m], profile: p, endpoints: [10.0.0.1:80]}',
      '- {id: b, region: w, models: [m], profile: p, endpoints: [10.0.0.2:80]}',
      'network: {rttMs: {west: {a: 1, b: 50}}}',
      'profiles: {p: {requestsPerSecond: 10}}',
      'demand: {west: {requestsPerSecond: 4}}',
      'policy: {bounds: [{frontend: west, pool: m, engine: b, min: 0.3}]}',
    ].join('\n'),
  );
  const { state } = new Signals(config, [], 0).evaluate(0);
  const engines = state.engines.map((engine) => ({
    ...engine,
    replicas: engine.replicas.map((replica) => ({ ...replica, ready: readyIds.includes(engine.id) })),
  }));
  const { profiles, policy } = config;
  return { state: { ...state, engines }, profiles, policy };
}

function planningOf(change: Partial<PlanningOptions>): { planning: Planning; alarms: Alarms } {
  const log = { info: () => {}, warn: () => {}, error: () => {} };
  const alarms = new Alarms(() => 0, log);
  const planning = new Planning(
    {
      optimizer,
      schedule: new SolveSchedule(),
      recorders: new Recorders(undefined, () => {
        throw new Error('nobody records');
      }),
      alarms,
      log,
      input: (previous) => ({ ...stateOf(['a', 'b']), previous }),
      generation: () => 1,
      isWanted: () => true,
      onSolved: () => {},
      onPlan: () => {},
      now: () => 0,
      ...change,
    },
    null,
  );
  return { planning, alarms };
}

it('an alarm tells for as long as a bound cannot be followed', async () => {
  let readyIds = ['a'];
  const { planning, alarms } = planningOf({ input: (previous) => ({ ...stateOf(readyIds), previous }) });
  await planning.run();
  expect(alarms.list).toMatchObject([
    {
      id: 'plan-input',
      message: 'bound of west and m on b is not followed: the engine cannot serve them now',
    },
  ]);
  readyIds = ['a', 'b'];
  await planning.run();
  expect(alarms.list).toEqual([]);
  expect(planning.plan!.rows[0]!.weights.find(({ engineId }) => engineId === 'b')!.weight).toBeGreaterThan(
    0.29,
  );
});

it('an alarm says that weights are plain for as long as nothing could be solved yet', async () => {
  let isBroken = true;
  const { planning, alarms } = planningOf({
    optimizer: {
      solveChecked: async (input) => {
        if (isBroken) throw new WardropError('WARDROP_SOLVER_TIMEOUT', 'no answer in time');
        return optimizer.solveChecked(input);
      },
    },
  });
  await planning.run();
  expect(alarms.list).toMatchObject([
    {
      id: 'planning',
      message: expect.stringMatching(
        /^WARDROP_SOLVER_TIMEOUT: no answer in time; all weights are plain until/,
      ),
    },
  ]);
  expect(planning.plan!.rows[0]!.weights.map(({ engineId }) => engineId)).toEqual(['a', 'b']);
  isBroken = false;
  await planning.run();
  expect(alarms.list).toEqual([]);
  expect(planning.plan!.rows[0]!.isPlain).toBeUndefined();
  isBroken = true;
  await planning.run();
  expect(alarms.list[0]!.message).toContain('the last good plan stays in force');
});

it('alarms about plans that were made here end once another control server makes them', async () => {
  const failing = {
    solveChecked: async () => {
      throw new WardropError('WARDROP_SOLVER_FAILED', 'it broke');
    },
  };
  const { planning, alarms } = planningOf({ optimizer: failing });
  await planning.run();
  expect(alarms.list).toMatchObject([{ id: 'planning' }]);
  expect(planning.failure).toBe('it broke');
  planning.rest();
  expect(alarms.list).toEqual([]);
  expect(planning.failure).toBe(null);
});

it('the event loop goes on while a plan of many frontends takes long', async () => {
  const ids = ['f', 'g', 'h', 'i'];
  const config = loadConfig('/none/fleet.yaml', () =>
    JSON.stringify({
      frontends: ids.map((id) => ({ id, region: 'w' })),
      engines: [{ id: 'a', region: 'w', models: ['m'], profile: 'p', endpoints: ['10.0.0.1:80'] }],
      profiles: { p: { requestsPerSecond: 10 } },
    }),
  );
  const { state } = new Signals(config, [], 0).evaluate(0);
  const { profiles, policy } = config;
  const solution = await optimizer.solveChecked(optimizerInput({ previous: null, state, profiles, policy }));
  let turns = 0;
  let isMade = false;
  const count = () => {
    turns++;
    if (!isMade) setImmediate(count);
  };
  let nowMs = 0;
  const { planning } = planningOf({
    optimizer: {
      solveChecked: async () => {
        setImmediate(count);
        return solution;
      },
    },
    input: (previous) => ({ previous, state, profiles, policy }),
    onPlan: () => {
      isMade = true;
    },
    now: () => (nowMs += 30),
  });
  await planning.run();
  expect(isMade).toBe(true);
  expect(turns).toBeGreaterThan(ids.length);
});
