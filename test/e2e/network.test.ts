import { afterAll, beforeAll, expect, it } from 'vitest';
import { Mesh, suspiciousLines } from './harness/mesh.js';
import { SlowRoad } from './harness/slow-road.js';
import { StubEngine } from './harness/stub-engine.js';

interface RoundTrip {
  readonly ms: number;
  readonly source: string;
  readonly configuredMs: number;
  readonly measuredMs: number | null;
  readonly samples: number;
}

interface FleetView {
  readonly frontends: readonly [{ readonly network: Readonly<Record<string, RoundTrip>> }];
}

interface PlanView {
  readonly rows: readonly [{ readonly weights: readonly { engineId: string; weight: number }[] }];
}

const stubs = { near: new StubEngine('near'), far: new StubEngine('far') };
/** The table has it the wrong way round. */
const CONFIGURED_MS = { near: 90, far: 20 };
const FAR_MS = 60;
let road: SlowRoad;
let mesh: Mesh;

beforeAll(async () => {
  await Promise.all(Object.values(stubs).map((stub) => stub.start()));
  road = await SlowRoad.open(stubs.far.address, FAR_MS);
  mesh = await Mesh.start({
    engines: [
      { id: 'near', endpoints: [stubs.near.address] },
      { id: 'far', endpoints: [road.address] },
    ].map((engine) => ({ ...engine, region: 'r', models: ['m'], profile: 'stub', slowStartSeconds: 0 })),
    rttMs: { west: CONFIGURED_MS },
    measure: true,
    profiles: { stub: { requestsPerSecond: 100 } },
    demand: { west: { requestsPerSecond: 20 } },
  });
});

afterAll(async () => {
  await mesh?.stop();
  road?.close();
  await Promise.all(Object.values(stubs).map((stub) => stub.kill()));
});

it('corrects round trips by what filters measure, without a request, and plans by them', async () => {
  const weightOf = async (id: string) => {
    const plan = await mesh.api<PlanView>('/v1/plan');
    return plan.rows[0].weights.find(({ engineId }) => engineId === id)?.weight ?? 0;
  };
  expect(await weightOf('far')).toBe(1);
  await mesh.startEnvoy('west', { concurrency: 2 });
  const network = await mesh.eventually('both to be measured', async () => {
    const { frontends } = await mesh.api<FleetView>('/v1/fleet');
    const pairs = frontends[0].network;
    return Object.values(pairs).every(({ source }) => source === 'measured') && pairs;
  });
  expect(network.far).toMatchObject({ source: 'measured', configuredMs: CONFIGURED_MS.far });
  // Timers may be a little early.
  expect(network.far!.measuredMs).toBeGreaterThan(0.95 * FAR_MS);
  expect(Math.abs(network.far!.ms - network.far!.measuredMs!)).toBeLessThan(10);
  // What is measured is believed within a factor of four.
  expect(network.near).toMatchObject({
    configuredMs: CONFIGURED_MS.near,
    ms: CONFIGURED_MS.near / 4,
    isLimited: true,
  });
  await mesh.eventually('an alarm', async () => {
    const { alarms } = await mesh.api<{ alarms: readonly { id: string }[] }>('/v1/alarms');
    return alarms.map(({ id }) => id).join() === 'network:west/near';
  });
  await mesh.eventually('the plan to follow', async () => (await weightOf('near')) === 1);
  const explained = await mesh.wardrop(
    'explain',
    '-c',
    mesh.configFile,
    '--frontend',
    'west',
    '--engine',
    'near',
  );
  expect(explained).toContain('The network is by measurement; 90.0 ms are configured.');
  expect(suspiciousLines(mesh.envoys[0]!.process.output)).toEqual([]);
});

it('goes on with what was measured after a restart', async () => {
  await mesh.control.stop();
  await mesh.startControlServer();
  const { frontends } = await mesh.api<FleetView>('/v1/fleet');
  expect(frontends[0].network.near).toMatchObject({ source: 'measured', ms: CONFIGURED_MS.near / 4 });
});
