import { afterEach, describe, expect, it, vi } from 'vitest';
import { id64 } from '../../wire/hash.js';
import { noEngineUsage, noPoolUsage, noVmUsage, type UsageReport } from '../../wire/usage-report.js';
import { WardropError } from '../../xds-server/errors.js';
import { Optimizer } from '../../xds-server/optimizer/index.js';
import { now } from '../../xds-server/steady-clock.js';
import { PATIENCE_MS } from '../patience.js';
import {
  afterwards,
  cleanUp,
  hasTwoEngines,
  holdClocks,
  planned,
  readinessOf,
  Site,
  startEngine,
} from './site.js';

afterEach(cleanUp);

describe('the control server', () => {
  it('tells filters of a lost engine at once and plans without it', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    const first = (await site.sync())!;
    expect(readinessOf(first)).toEqual({ a: [true], b: [true] });
    a.kill();
    await vi.waitFor(
      async () => expect(readinessOf(await site.sync())).toEqual({ a: [false], b: [true] }),
      PATIENCE_MS,
    );
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    expect(server.alarms.list.map(({ id }) => id)).toEqual([`replica-down:${a.address}`]);
    const later = (await site.sync())!;
    expect(later.version).toBeGreaterThan(first.version);
    expect(later.planId).toBe(server.plan!.id);
  });

  it('keeps the last good plan when planning fails, hands lost engines to their backups and raises an alarm', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const optimizer = new Optimizer();
    afterwards(() => optimizer.close());
    let isBroken = false;
    const server = await site.start({
      solveChecked: async (input) => {
        if (isBroken) throw new WardropError('WARDROP_SOLVER_TIMEOUT', 'no answer in time');
        return optimizer.solveChecked(input);
      },
    });
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    isBroken = true;
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    const { body } = await site.get('/v1/alarms');
    expect(JSON.stringify(body)).toContain(
      'WARDROP_SOLVER_TIMEOUT: no answer in time; the last good plan stays',
    );
    isBroken = false;
    await vi.waitUntil(() => !server.alarms.list.some(({ id }) => id === 'planning'), PATIENCE_MS);
  });

  it('gives Envoys plain weights when not even the first solve succeeds, and says so in status and explanation', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const optimizer = new Optimizer();
    afterwards(() => optimizer.close());
    let isBroken = true;
    const server = await site.start({
      solveChecked: async (input) => {
        if (isBroken) throw new WardropError('WARDROP_PLAN_REJECTED', 'the plan failed its checks');
        return optimizer.solveChecked(input);
      },
    });
    expect(await planned(server)).toEqual({ a: 0.5, b: 0.5 });
    expect((await site.sync())!.pools[0]!.segments.length).toBeGreaterThan(1);
    const plain = /all weights are plain until a solve succeeds/;
    expect((await site.get('/v1/status')).body).toMatchObject({
      plan: { plain: expect.stringMatching(plain) },
      alarms: [{ id: 'planning', message: expect.stringMatching(plain) }],
    });
    const { status, body } = await site.get('/v1/explain?frontend=f&engine=a');
    expect(status).toBe(503);
    expect(JSON.stringify(body)).toMatch(
      /nothing is solved yet; the plan failed its checks; all weights are/,
    );
    isBroken = false;
    await vi.waitUntil(() => server.plan !== null && server.plan.rows[0]!.isPlain === undefined, PATIENCE_MS);
    expect((await site.get('/v1/status')).body).toMatchObject({ plan: { plain: null } });
  });

  it('refuses excess demand and says by how much', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    site.write(site.text({ a: a.address, b: b.address }, 30));
    const server = await site.start();
    await planned(server);
    const shed = server.plan!.rows[0]!.shed[0]!;
    expect(shed.fraction).toBeCloseTo(1 / 3, 1);
    await vi.waitFor(
      () => expect(server.alarms.list.map(({ id }) => id)).toEqual(['shedding:f/m']),
      PATIENCE_MS,
    );
    expect(server.alarms.list[0]!.message).toMatch(/demand above capacity: 3\d\.\d % of 30\.0 requests\/s/);
  });

  it('drains an engine by an operator’s will, tells so, and remembers it over a restart', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    const post = async (body: object) =>
      (
        await fetch(`${site.admin}/v1/operations`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).status;
    expect(await post({ action: 'drain', target: 'c' })).toBe(400);
    expect(await post({ action: 'explode', target: 'b' })).toBe(400);
    expect(await post({ action: 'drain', target: 'b', overSeconds: 0, by: 'me' })).toBe(200);
    await vi.waitUntil(
      () => server.plan!.rows[0]!.weights.every(({ engineId }) => engineId !== 'b'),
      PATIENCE_MS,
    );
    expect(server.alarms.list.map(({ id }) => id)).toContain('drained:b');
    await server.stop();

    const again = await site.start();
    const { body } = await site.get('/v1/operations');
    expect(body).toEqual({
      drains: [expect.objectContaining({ engineId: 'b' })],
      orders: [],
      actions: [expect.objectContaining({ action: 'drain', by: 'me' })],
    });
    expect(again.view.state.engines.map(({ drain }) => drain)).toEqual([1, 0]);
  });

  it('plans anew when requests are measured to be of another size, without waiting, and shows how they are', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const optimizer = new Optimizer();
    afterwards(() => optimizer.close());
    const promptTokens: number[] = [];
    const server = await site.start({
      solveChecked: (input) => {
        promptTokens.push(input.state.demands[0]!.promptTokens);
        return optimizer.solveChecked(input);
      },
    });
    await planned(server);
    // Time passes by what the test lets pass, so that nothing is solved because of that.
    holdClocks();
    const report = (sequence: number): UsageReport => {
      const answers = 30 * sequence;
      const tokens = {
        promptCount: answers,
        promptTokens: answers * 4_000,
        cachedOfTokens: answers * 4_000,
        cachedTokens: answers * 3_000,
        outputCount: answers,
        outputTokens: answers * 60,
      };
      const bodies = { offered: answers, bodiesRead: answers, followUps: answers * 0.8 };
      const engines = [{ ...noEngineUsage(id64('m'), id64('a')), usageCount: answers }];
      const pools = [{ ...noPoolUsage(id64('m')), ...bodies, ...tokens }];
      return { vms: [{ ...noVmUsage(1n, sequence), pools, engines }] };
    };
    // Two hundred answers are there after 7 reports, and ten minutes later it counts.
    for (let sequence = 1; sequence <= 107; sequence++) {
      await site.sync(0, report(sequence));
      vi.setSystemTime(now() + 6_000);
    }
    // Another solve now, so that the next one for lack of another reason is ten seconds away.
    site.write(`${site.text({ a: engine.address })}policy: {targetUtilization: 0.8}\n`);
    const solves = promptTokens.length;
    await server.reload('for the test');
    await vi.waitUntil(() => promptTokens.length > solves, PATIENCE_MS);
    expect(new Set(promptTokens)).toEqual(new Set([512]));
    await site.sync(0, report(108));
    vi.setSystemTime(now() + 1_000);
    await vi.waitUntil(() => promptTokens.at(-1) === 4_000, PATIENCE_MS);
    const { body } = await site.get('/v1/fleet');
    expect((body as { demands: object[] }).demands).toEqual([
      expect.objectContaining({
        promptTokens: 4_000,
        uncachedPromptTokens: 1_000,
        outputTokens: 60,
        source: 'measured',
        confidence: expect.any(Number),
        sizes: expect.objectContaining({
          source: 'measured',
          measured: expect.objectContaining({
            outputTokens: expect.closeTo(60),
            ageSeconds: expect.closeTo(1, 0),
            confidence: 1,
          }),
        }),
        measured: {
          promptTokens: expect.objectContaining({ value: expect.closeTo(4_000), confidence: 1 }),
          outputTokens: expect.objectContaining({ value: expect.closeTo(60), source: 'answers' }),
          followUpShare: expect.objectContaining({
            value: expect.closeTo(0.8),
            source: 'bodies',
            ageSeconds: expect.closeTo(1, 0),
          }),
          hitShare: expect.objectContaining({ value: expect.closeTo(0.75), confidence: 1 }),
        },
      }),
    ]);
  });

  it('takes its own being held up for nobody’s silence, and goes on when it has heard how things are', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    const noteHoldUp = vi.spyOn(server.signals, 'noteHoldUp');
    holdClocks();
    const report = (sequence: number) => site.sync(0, { vms: [noVmUsage(1n, sequence)] });
    await report(1);
    const endMs = now() + 30_000;
    vi.setSystemTime(endMs);
    await vi.waitUntil(() => noteHoldUp.mock.calls.length > 0, PATIENCE_MS);
    await report(2);
    vi.setSystemTime(endMs + 1_000);
    await vi.waitUntil(() => server.view.state.atMs >= endMs, PATIENCE_MS);
    expect(server.view.state.atMs).toBeGreaterThanOrEqual(endMs + 1_000);
    expect(server.view.silentFrontends).toEqual([]);
    expect(noteHoldUp).toHaveBeenCalledOnce();
  });
});
