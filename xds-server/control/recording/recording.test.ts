import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { noPoolUsage, noVmUsage } from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import { WardropError } from '../../errors.js';
import { Optimizer } from '../../optimizer/index.js';
import { makePlan, type PlanSolver } from '../../plan/make-plan.js';
import type { Plan } from '../../plan/plan.js';
import { Signals } from '../../signals/signals.js';
import type { Recorded, RecordedSolve } from './recording.js';
import { RecordingReader } from './recording-reader.js';
import { RecordingWriter } from './recording-writer.js';
import { replay } from './replay.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

function configOf(rps: number) {
  return loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}, {id: g, region: r}]',
      'engines:',
      '- {id: a, region: r, models: [m], profile: p, endpoints: ["10.0.0.1:80"]}',
      '- {id: b, region: r, models: [m], profile: p, endpoints: ["10.0.0.2:80"]}',
      'network: {rttMs: {f: {a: 1, b: 7}, g: {a: 3, b: null}}}',
      'profiles: {p: {requestsPerSecond: 10}}',
      `demand: {f: {requestsPerSecond: ${rps}}, g: {requestsPerSecond: 2.5}}`,
    ].join('\n'),
  );
}

/** Solves one after the other, each starting from the plan before. */
async function solves(rates: readonly number[]): Promise<RecordedSolve[]> {
  const recorded: RecordedSolve[] = [];
  let previous: Plan | null = null;
  for (const [at, rps] of rates.entries()) {
    const config = configOf(rps);
    const { state } = new Signals(config, [], 0).evaluate(1_000 * (at + 1));
    const input = { previous, state, profiles: config.profiles, policy: config.policy };
    const times: number[] = [];
    const now = () => {
      times.push(5_000 + at * 100 + times.length);
      return times.at(-1)!;
    };
    const { plan } = await makePlan(optimizer, input, now);
    recorded.push({ kind: 'solve', input, times, plan });
    previous = plan;
  }
  return recorded;
}

function written(list: readonly Recorded[]): string {
  const writer = new RecordingWriter();
  return list.flatMap((recorded) => [...writer.lines(recorded)]).join('');
}

function read(text: string): Recorded[] {
  const reader = new RecordingReader();
  return text
    .trimEnd()
    .split('\n')
    .flatMap((line) => reader.read(line) ?? []);
}

describe('a recording', () => {
  it('gives back what went in, and its plans can be made again byte for byte', async () => {
    const recorded = await solves([3, 3, 6, 12]);
    const back = read(written(recorded));
    expect(back).toEqual(recorded);
    for (const solve of back as RecordedSolve[]) {
      expect(await replay(optimizer, solve)).toMatchObject({ isSame: true, planId: solve.plan!.id });
    }
  });

  it('of a version for which all pools were one gives the same plans, too', async () => {
    const recorded = await solves([3, 12]);
    const text = written(recorded)
      .replace('{"wardropRecording":3}', '{"wardropRecording":1}')
      .replaceAll(/"line":\d+,/g, '')
      .replaceAll(/"settledSecondsByPool":\{.*?\},/g, '');
    const back = read(text) as RecordedSolve[];
    for (const solve of back) {
      expect(solve.input.state.settledSecondsByPool).toBeUndefined();
      expect((await replay(optimizer, solve)).isSame).toBe(true);
    }
  });

  it('tells of a solve that failed why it did, and whether it does again', async () => {
    const [solve] = await solves([3]);
    const late = 'the linear program was not solved before the deadline';
    const failing: PlanSolver = {
      solveChecked: async () => {
        throw new WardropError('WARDROP_SOLVER_TIMEOUT', late);
      },
    };
    const { plan } = await makePlan(failing, solve!.input, () => solve!.times[0]!);
    const [back] = read(written([{ ...solve!, plan, failure: late }])) as RecordedSolve[];
    expect(await replay(failing, back!)).toMatchObject({ isSame: true, failedThen: late, failedNow: late });
    expect(await replay(optimizer, back!)).toMatchObject({
      isSame: false,
      failedThen: late,
      failedNow: null,
    });
    expect(await replay(optimizer, solve!)).toMatchObject({
      isSame: true,
      failedThen: null,
      failedNow: null,
    });
  });

  it('tells when another plan comes out', async () => {
    const [solve] = await solves([3]);
    const changed = { ...solve!, plan: { ...solve!.plan!, objectiveSeconds: 1e9 } };
    expect((await replay(optimizer, changed)).isSame).toBe(false);
  });

  it.each([
    ...[{ fleet: {} }, { times: null }, { plan: { rows: 1 } }, { policy: 5 }, { policy: {} }, { atMs: 'x' }],
    ...[{ demands: [{}] }, { engines: { a: 1 } }, { profiles: [['p']] }],
  ])('with a damaged solve is refused: %j', async (damage) => {
    const lines = written(await solves([3, 6, 12]))
      .trimEnd()
      .split('\n');
    const damaged = lines.map((line, at) =>
      at === 2 ? JSON.stringify({ ...JSON.parse(line), ...damage }) : line,
    );
    const all = async () => {
      for (const solve of read(damaged.join('\n')) as RecordedSolve[]) await replay(optimizer, solve);
    };
    await expect(all()).rejects.toMatchObject({ code: 'WARDROP_RECORDING_INVALID' });
  });

  it('says where lines are missing, after what came before; none may come twice or change places', async () => {
    const lines = written(await solves([3, 6, 12, 24]))
      .trimEnd()
      .split('\n');
    /** How many solves are read of these lines, and what is said then. */
    const reading = (...kept: number[]) => {
      const reader = new RecordingReader();
      let count = 0;
      try {
        for (const at of kept) if (reader.read(lines[at]!) !== undefined) count++;
      } catch (error) {
        return [count, (error as Error).message];
      }
      return [count, 'no fault'];
    };
    expect(reading(0, 1, 2)).toEqual([2, 'no fault']);
    expect(reading(0, 1, 2, 4)).toEqual([
      2,
      expect.stringMatching(/^line 4 .* was line 5 .* 1 line is missing/),
    ]);
    expect(reading(0, 3)).toEqual([0, expect.stringMatching(/^line 2 .* was line 4 .* 2 lines are missing/)]);
    expect(reading(0, 1, 1)).toEqual([1, expect.stringMatching(/^line 3 .* was not written there/)]);
    expect(reading(0, 1, 3, 2)).toEqual([1, expect.stringMatching(/^line 3 .* was line 4/)]);
  });

  it('holds usage reports as they came in', () => {
    const hash = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
    const pool = fc
      .tuple(hash, fc.maxSafeNat())
      .map(([pool, offered]) => ({ ...noPoolUsage(pool), offered }));
    fc.assert(
      fc.property(fc.array(pool, { maxLength: 3 }), (pools) => {
        const report = {
          kind: 'report' as const,
          atMs: 7,
          frontendId: 'f',
          nodeId: 'n',
          report: { vms: [{ ...noVmUsage(1n), pools }] },
        };
        expect(read(written([report]))).toEqual([report]);
      }),
    );
  });

  it('writes only what has changed', async () => {
    const [first, second] = written(await solves([3, 3]))
      .trimEnd()
      .split('\n')
      .slice(1);
    expect(first).toContain('"fleet"');
    expect(second).not.toContain('"fleet"');
    expect(second!.length).toBeLessThan(first!.length / 4);
  });

  it.each([
    ['{}', /line 1 .* does not name its format/],
    ['{"wardropRecording":4}', /line 1 .* format 4, which a newer version of Wardrop reads/],
    ['{"wardropRecording":1}\n{', /line 2 .* is no JSON/],
    ['{"wardropRecording":1}\n{"kind":"other"}', /line 2 .* neither a solve nor a signal/],
    ['{"wardropRecording":3}\n{"wardropRecording":3}', /line 2 .* begins another recording/],
    ['{"wardropRecording":3}\n{"kind":"evaluate","atMs":1}', /line 2 .* was not written there/],
    [
      '{"wardropRecording":2}\n{"kind":"report","bytes":"AAAA"}',
      /line 2 .* is damaged, or of another version/,
    ],
    ['{"wardropRecording":1}\n{"kind":"solve","times":[]}', /line 2 .* lacks what came before it/],
  ])('that is none is refused with the line: %j', (text, reason) => {
    expect(() => read(text)).toThrowError(reason);
  });
});
