import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import * as grpc from '@grpc/grpc-js';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { run } from '../../xds-server/cli/run.js';
import type { Alarm } from '../../xds-server/control/alarms/alarms.js';
import type { Changed } from '../../xds-server/control/planning/plan-history.js';
import type { WhatIf } from '../../xds-server/control/questions/what-if.js';
import type { Replayed } from '../../xds-server/control/recording/replay.js';
import { CLUSTER_TYPE } from '../../xds-server/xds/protocol/type-url.js';
import { socketWire } from '../conformance/server.js';
import { PATIENCE_MS } from '../patience.js';
import { afterwards, cleanUp, hasTwoEngines, planned, Site, startEngine } from './site.js';

const ADS = '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources';

afterEach(cleanUp);

describe('the control server', () => {
  it('can be recorded, and its plans can be made again from the file', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    const said = vi.spyOn(console, 'log').mockReturnValue(undefined);
    afterwards(() => said.mockRestore());
    const file = join(site.folder, 'fleet.jsonl.gz');
    writeFileSync(file, 'something else');
    const complained = vi.spyOn(console, 'error').mockReturnValue(undefined);
    afterwards(() => complained.mockRestore());
    const record = ['record', '--url', site.admin, '--out', file, '--for', '3s'];
    expect(await run(record)).toBe(1);
    expect(complained.mock.lastCall![0]).toMatch(/is there already.*--force.*WARDROP_OUTPUT_FAILED/s);
    const recording = run([...record, '--force']);
    await site.sync();
    b.kill();
    expect(await recording).toBe(0);
    expect(await run(['replay', file, '--json'])).toBe(0);
    const replayed = JSON.parse(said.mock.lastCall![0] as string) as Replayed[];
    expect(replayed.length).toBeGreaterThan(1);
    expect(replayed.every(({ isSame }) => isSame)).toBe(true);
    // The last solve before it is in it, and perhaps one that was under way.
    const states = replayed.map(({ isSameState }) => isSameState);
    expect(states).not.toContain(false);
    expect(states.lastIndexOf(null)).toBeLessThan(2);
    expect(states.at(-1)).toBe(true);
    expect(replayed.at(-1)!.planId).toBe(server.plan!.id);

    const { planId, sequence } = replayed[0]!;
    const explain = ['explain', '--recording', file, '--frontend', 'f', '--engine', 'b'];
    expect(await run([...explain, '--plan', planId!])).toBe(0);
    expect(said.mock.lastCall![0]).toContain(
      `This is as it was for plan ${sequence} (${planId}), in force from`,
    );
    expect(said.mock.lastCall![0]).toMatch(/f → b, pool m: weight 50.0 %/);
    expect(await run([...explain, '--plan', 'ffffffffffffffff'])).toBe(2);
    expect(complained.mock.lastCall![0]).toContain(
      `plan ffffffffffffffff is not in the recording, which has ${sequence} (${planId}, `,
    );
    expect(await run(explain)).toBe(2);
    expect(complained.mock.lastCall![0]).toContain('--recording needs --plan');
  });

  it('raises an alarm of who is refused over xDS, as an Envoy of a frontend that it does not know', async () => {
    const site = await Site.create({ a: (await startEngine()).address });
    await site.start();
    const client = new grpc.Client(site.xds, grpc.credentials.createInsecure());
    afterwards(() => client.close());
    const wire = socketWire(client, ADS);
    const node = { id: 'n', cluster: 'gone', region: '', metadata: {}, userAgent: '', userAgentVersion: '' };
    const request = { typeUrl: CLUSTER_TYPE, versionInfo: '', resourceNames: [], responseNonce: '' };
    wire.send({ ...request, node: { ...node, extensions: new Set() } });
    await expect(wire.next()).rejects.toThrow('gone');
    const alarms = async () => (await site.get('/v1/alarms')).body as { alarms: Alarm[] };
    const refused = async () =>
      (await alarms()).alarms.find(({ id }) => id === 'envoy-refused:127.0.0.1')?.message;
    expect(await vi.waitUntil(refused, PATIENCE_MS)).toMatch(
      /^who asks for xDS from 127\.0\.0\.1 is refused: .*gone/,
    );
  });

  it('shows plan, fleet, Envoys, configuration and metrics', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const bound = '{frontend: f, pool: m, engine: a, min: 0.5}';
    site.write(`${site.text({ a: engine.address })}policy: {bounds: [${bound}]}\n`);
    const server = await site.start();
    await planned(server);
    await site.sync();
    expect((await site.get('/v1/plan')).body).toMatchObject({ id: server.plan!.id, sequence: 1 });
    expect((await site.get('/v1/fleet')).body).toMatchObject({
      frontends: [{ id: 'f', networkMs: { a: 0 } }],
      engines: [{ id: 'a', replicas: [{ address: engine.address, ready: true, health: { state: 'up' } }] }],
      demands: [{ requestsPerSecond: 5, source: 'expected' }],
    });
    expect((await site.get('/v1/envoys')).body).toMatchObject({
      envoys: [],
      withoutStream: [{ nodeId: 'n', frontendId: 'f', snapshot: { version: 0, isNewest: false } }],
    });
    expect((await site.get('/v1/config')).body).toMatchObject({
      config: { demand: { f: { requestsPerSecond: 5 } } },
    });
    expect((await site.get('/nothing')).status).toBe(404);
    const page = await (await fetch(`${site.admin}/metrics`)).text();
    expect(page).toMatch(/^wardrop_plan_sequence 1$/m);
    expect(page).toMatch(/^wardrop_weight\{frontend="f",pool="m",engine="a"\} 1$/m);
    expect(page).toMatch(/^wardrop_weight_bound\{frontend="f",pool="m",engine="a",limit="min"\} 0.5$/m);
    expect(page).not.toMatch(/limit="max"/);
    expect(page).toMatch(/^wardrop_plan_mix_error_seconds -?\d/m);
    expect(page).toMatch(/^wardrop_sync_calls_total\{status="200"\} 1$/m);
    expect(page).toMatch(/^wardrop_solves_total\{result="ok"\} \d+$/m);
    expect(await (await fetch(`${site.admin}/`)).text()).toContain('/v1/fleet');
    const manual = readFileSync(resolve(import.meta.dirname, '../../docs/operations.md'), 'utf8');
    const served = [...page.matchAll(/^# HELP (wardrop_\w+) /gm)].map(([, name]) => name!);
    for (const name of served) expect(manual).toContain(`\`${name}\``);
    // Its tables and its rules name nothing else.
    for (const [name] of manual.matchAll(/\bwardrop_\w+/g)) {
      if (name !== 'wardrop_') expect(served).toContain(name.replace(/_bucket$/, ''));
    }
  });

  it('shows no label and no series of the pages of engines in its own', async () => {
    const forged = 'm\\"} 1\\nforged_series{a=\\"b';
    const labels = Array.from({ length: 500 }, (_, at) => `model_name="${forged}",rank="${at}"`);
    const lines = labels.flatMap((each) => [
      `vllm:num_requests_running{${each}} 1`,
      `vllm:num_requests_waiting{${each}} 0`,
      `forged_series{${each}} 7`,
    ]);
    const engine = await startEngine(lines.join('\n'));
    const site = await Site.create({ a: engine.address });
    const seriesOf = async () => {
      const page = await (await fetch(`${site.admin}/metrics`)).text();
      const ours = page
        .split('\n')
        .filter((line) => line.startsWith('wardrop_engine_') || /forged/.test(line));
      return ours.map((line) => line.slice(0, line.lastIndexOf(' ')));
    };
    site.write(site.text({ a: engine.address }).replace('profile: p,', 'profile: p, metrics: {kind: vllm},'));
    await planned(await site.start());
    const running = 'wardrop_engine_running_requests{engine="a"}';
    const series = await vi.waitFor(async () => {
      const all = await seriesOf();
      expect(all).toContain(running);
      return all;
    }, PATIENCE_MS);
    expect(series.filter((name) => !/^wardrop_engine_\w+\{(\w+="[\w:]+",?)+\}$/.test(name))).toEqual([]);
    expect(series.length).toBeLessThan(30);
  });

  it('explains a weight in JSON and in words', async () => {
    const engine = await startEngine();
    const site = await Site.create({ a: engine.address });
    const server = await site.start();
    await planned(server);
    const path = '/v1/explain?frontend=f&engine=a';
    expect((await site.get(path)).body).toMatchObject({
      planId: server.plan!.id,
      failure: null,
      weightInForce: 1,
      explanation: { frontendId: 'f', poolId: 'm', engineId: 'a', engine: { weight: 1 } },
    });
    const words = await (await fetch(`${site.admin}${path}`, { headers: { accept: 'text/plain' } })).text();
    expect(words).toContain('f → a, pool m: weight 100.0 %');
    expect(words).toContain(`Plan ${server.plan!.id}.`);
    expect(await site.get('/v1/explain?frontend=f')).toMatchObject({
      status: 400,
      body: { code: 'WARDROP_QUERY_INVALID', message: 'say which engine; known: a' },
    });
  });

  it('explains a weight as it was under a plan of before, by the id that responses and access logs tell', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    const { id, sequence, createdAtMs } = server.plan!;
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    const path = '/v1/explain?frontend=f&engine=a';
    expect((await site.get(path)).body).toMatchObject({ past: null, weightInForce: 0 });
    const { body } = await site.get(`${path}&plan=${id}`);
    expect(body).toMatchObject({
      ...{ planId: id, failure: null, weightInForce: 0.5 },
      past: { sequence, planId: id, createdAtMs, nextAtMs: expect.any(Number) },
      explanation: { engine: { weight: 0.5 }, supply: { readyReplicas: 1, replicas: 1 } },
    });
    expect((await site.get(`${path}&plan=${sequence}`)).body).toEqual(body);
    expect((await site.get(`/v1/changes?since=${id}`)).body).toMatchObject({ since: { sequence } });
    const refused = await site.get(`${path}&plan=812`);
    expect(refused).toMatchObject({ status: 400, body: { code: 'WARDROP_QUERY_INVALID' } });
    expect(JSON.stringify(refused.body)).toMatch(
      /plan 812 is not kept; kept: \d+ \([0-9a-f]{16}, .*recording/,
    );
    const nonsense = await site.get(`${path}&plan=abc`);
    expect(JSON.stringify(nonsense.body)).toContain('plan=abc: expected the number or the id of a plan');
  });

  it('says which input changed which weight', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await vi.waitUntil(() => hasTwoEngines(server), PATIENCE_MS);
    expect((await site.get('/v1/changes')).status).toBe(400);
    const nonsense = await site.get('/v1/changes?since=abc');
    expect(nonsense).toMatchObject({ status: 400, body: { code: 'WARDROP_QUERY_INVALID' } });
    expect(JSON.stringify(nonsense.body)).toContain('since=abc: expected the number or the id of a plan');
    const { sequence } = server.plan!;
    a.kill();
    await vi.waitFor(async () => expect(await planned(server)).toEqual({ b: 1 }), PATIENCE_MS);
    const { body } = await site.get(`/v1/changes?since=${sequence}`);
    const { since, until, effects } = body as Changed;
    expect([since.sequence, until.sequence]).toEqual([sequence, server.plan!.sequence]);
    const capacity = effects.find(({ cause }) => cause === 'capacity')!;
    expect(capacity.weights).toContainEqual(expect.objectContaining({ engineId: 'a', after: 0 }));
    const words = await (
      await fetch(`${site.admin}/v1/changes`, { headers: { accept: 'text/plain' } })
    ).text();
    expect(words).toMatch(/^From plan \d+ \(.*\) to plan \d+ /);
    expect(words).toMatch(/^capacity: /m);
  });

  it('answers what would be without an engine and how much can grow', async () => {
    const [a, b] = [await startEngine(), await startEngine()];
    const site = await Site.create({ a: a.address, b: b.address });
    const server = await site.start();
    await planned(server);
    const ask = (body: string) =>
      fetch(`${site.admin}/v1/what-if`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
    const { id } = server.plan!;
    const changes = { without: ['b'], demand: [{ frontendId: 'f', factor: 3 }] };
    const answer = (await (await ask(JSON.stringify(changes))).json()) as WhatIf;
    expect(answer.rows[0]).toMatchObject({ demandRps: { before: 5, after: 15 } });
    expect(answer.rows[0]!.refusedRps.after).toBeCloseTo(5, 1);
    expect(server.plan!.id).toBe(id);
    for (const wrong of ['{', '{"with": 1}', '{"without": ["x"]}', '[]']) {
      const refusal = await ask(wrong);
      expect(refusal.status).toBe(400);
      expect(await refusal.json()).toMatchObject({ code: 'WARDROP_QUERY_INVALID' });
    }
    expect((await site.get('/v1/headroom')).body).toMatchObject({
      frontends: [{ frontendId: 'f', growth: 4 }],
    });
  });
});
