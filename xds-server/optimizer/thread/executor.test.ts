import { describe, expect, test } from 'vitest';
import { Optimizer } from '../index.js';
import { threeRegions, worldInput } from '../testing/world.js';
import { type Executor, ThreadExecutor } from './executor.js';
import type { Outcome } from './task.js';

const input = worldInput(threeRegions);

/** A thread that answers each task by running this body. */
function thread(body: string): URL {
  const code = `import { parentPort } from 'node:worker_threads'; parentPort.on('message', (task) => { ${body} });`;
  return new URL(`data:text/javascript,${encodeURIComponent(code)}`);
}

async function answerOf(body: string, graceSeconds = 15): Promise<Outcome> {
  const executor = new ThreadExecutor(thread(body), graceSeconds);
  try {
    return await executor.run({ input, deadlineSeconds: 0.1, isChecked: false });
  } finally {
    await executor.close();
  }
}

describe("the solver's thread", () => {
  test('gets the task and gives the answer', async () => {
    const answer = await answerOf(
      "parentPort.postMessage({ ok: false, message: task.input.policy.maxUtilization + '' });",
    );
    expect(answer).toEqual({ ok: false, message: '1' });
  });

  test('that hangs is given up after deadline and grace', async () => {
    await expect(answerOf('for (;;);', 0.2)).rejects.toMatchObject({
      code: 'WARDROP_SOLVER_TIMEOUT',
      message: expect.stringContaining('no answer from the solver within 0.3') as string,
    });
  });

  test('that throws fails the task', async () => {
    await expect(answerOf("throw new Error('Aborted()');")).rejects.toMatchObject({
      code: 'WARDROP_SOLVER_FAILED',
      message: "the solver's thread broke: Aborted()",
    });
  });

  test('that ends fails the task', async () => {
    await expect(answerOf('process.exit(3);')).rejects.toMatchObject({
      code: 'WARDROP_SOLVER_FAILED',
      message: "the solver's thread ended with status 3",
    });
  });

  test('that has ended since its last task fails the next one at once', async () => {
    const entry = thread(
      "parentPort.postMessage({ ok: false, message: '' }); setImmediate(() => process.exit(3));",
    );
    const executor = new ThreadExecutor(entry, 600);
    const task = { input, deadlineSeconds: 0.1, isChecked: false };
    await executor.run(task);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await expect(executor.run(task)).rejects.toMatchObject({
      code: 'WARDROP_SOLVER_FAILED',
      message: "the solver's thread ended with status 3",
    });
    await executor.close();
  });
});

describe('the optimizer', () => {
  /** Executors that follow a script: one outcome, or one error, for each task. */
  function scripted(script: readonly (Outcome | Error)[]) {
    const log: string[] = [];
    const rest = [...script];
    const executor = (): Executor => {
      log.push('start');
      return {
        run: async () => {
          const next = rest.shift()!;
          log.push('run');
          if (next instanceof Error) throw next;
          return next;
        },
        close: async () => {
          log.push('close');
        },
      };
    };
    return { optimizer: new Optimizer({ executor }), log };
  }

  const solved = { ok: true, solution: { rows: [] }, memoryBytes: 5 } as unknown as Outcome;
  const refused: Outcome = { ok: false, code: 'WARDROP_INPUT_INVALID', message: 'no' };
  const failed: Outcome = { ok: false, code: 'WARDROP_SOLVER_FAILED', message: 'Aborted()' };

  test('starts afresh after a failure, and after a broken thread', async () => {
    const { optimizer, log } = scripted([failed, new Error('gone'), solved]);
    await expect(optimizer.solve(input)).rejects.toMatchObject({ code: 'WARDROP_SOLVER_FAILED' });
    await expect(optimizer.solve(input)).rejects.toThrow('gone');
    expect(await optimizer.solve(input)).toEqual({ rows: [] });
    expect(log).toEqual(['start', 'run', 'close', 'start', 'run', 'close', 'start', 'run']);
    expect(optimizer.memoryBytes).toBe(5);
  });

  test('keeps its solver when only the input was at fault', async () => {
    const { optimizer, log } = scripted([refused, solved]);
    await expect(optimizer.solve(input)).rejects.toMatchObject({
      code: 'WARDROP_INPUT_INVALID',
      message: 'no',
    });
    await optimizer.solve(input);
    expect(log).toEqual(['start', 'run', 'run']);
  });

  test('solves one input at a time, in the order of the calls', async () => {
    const optimizer = new Optimizer();
    const objectives = await Promise.all(
      [1, 0.5, 1].map(async (factor) => {
        const demands = input.state.demands.map((demand) => ({
          ...demand,
          requestsPerSecond: demand.requestsPerSecond * factor,
        }));
        return (await optimizer.solve({ ...input, state: { ...input.state, demands } })).objectiveSeconds;
      }),
    );
    expect(objectives[0]).toBe(objectives[2]);
    expect(objectives[1]).toBeLessThan(objectives[0]!);
    await optimizer.close();
  });

  test('solves no more once closed', async () => {
    const optimizer = new Optimizer();
    await optimizer.close();
    await expect(optimizer.solve(input)).rejects.toMatchObject({ code: 'WARDROP_SOLVER_FAILED' });
  });

  test('gives up in HiGHS itself when its time is over', async () => {
    const optimizer = new Optimizer({ deadlineSeconds: 0 });
    await expect(optimizer.solve(input)).rejects.toMatchObject({ code: 'WARDROP_SOLVER_TIMEOUT' });
    await optimizer.close();
  });
});
