import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Demand, EngineState } from '../../fleet/fleet-state.js';
import type { Plan } from '../../plan/plan.js';
import { dashboard } from './dashboard.js';
import type { Overview } from './overview.js';

const atMs = 1_700_000_000_000;

function engine(id: string, change: Partial<EngineState> = {}): Overview['engines'][number] {
  const replicas = [{ address: '10.0.0.1:8000', ready: true }];
  const state = { id, replicas, health: 1, ramp: 1, drain: 1, penalty: 0, latencyFactor: 1, ...change };
  const traffic = {
    endedPerSecond: 40,
    failuresPerSecond: 0.2,
    answers: 50,
    rejectedShare: 0.04,
    firstTokenSeconds: 0.1234,
    wholeSeconds: null,
  };
  return {
    state,
    traffic,
    inFlight: 3,
    measuredShare: 1,
    isLeftOut: false,
    drainedReplicas: 0,
    penaltyOrder: null,
    lastResortOf: [],
    keptFor: [],
  };
}

function plan(poolId: string, engineId: string): Plan {
  const row = { frontendId: 'west', poolId, demandRps: 60, weights: [{ engineId, weight: 1 }] };
  return {
    id: 'abc',
    sequence: 7,
    createdAtMs: atMs - 30_000,
    rows: [{ ...row, segments: [], retryRatio: 0, shed: [{ priority: 0, fraction: 0.25 }] }],
    engines: [
      { engineId, effectiveCapacity: 1, rho: 1.04, congestionPriceSeconds: 1, scarcityPriceSeconds: 0 },
    ],
    objectiveSeconds: 1,
  };
}

const empty: Overview = {
  atMs,
  startedAtMs: atMs,
  plan: null,
  plannedBy: null,
  steered: 1,
  alarms: [],
  frontends: [],
  pools: [],
  demands: [],
  engines: [],
  envoys: [],
};

describe('dashboard', () => {
  it('names every path of the API that the manual lists', () => {
    const manual = readFileSync(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
    const paths = [...manual.matchAll(/^\| `(?:GET|POST) (\/[a-z0-9/-]+)/gm)].map(([, path]) => path!);
    expect(paths.length).toBeGreaterThan(15);
    const page = dashboard(empty);
    expect(paths.filter((path) => !page.includes(path))).toEqual([]);
  });

  it('says what is not there yet', () => {
    const page = dashboard(empty);
    expect(page).toContain('No plan is published yet.');
    expect(page).toContain('No alarms.');
    expect(page).toContain('None is connected.');
  });

  it('links every weight to its explanation', () => {
    const pools = [{ id: 'chat', engineIds: ['a', 'b'] }];
    const page = dashboard({ ...empty, plan: plan('chat', 'a'), pools, engines: [engine('a'), engine('b')] });
    expect(page).toContain('Plan 7 (abc) is in force');
    expect(page).toContain('href="/v1/explain?frontend=west&amp;pool=chat&amp;engine=a" title="why">100.0 %');
    expect(page).toContain('href="/v1/explain?frontend=west&amp;pool=chat&amp;engine=b" title="why">–');
    expect(page).toContain('104 %');
    expect(page).toContain('25.0 % of priority 0');
  });

  it('shows the traffic of the last minute, and lets stand out what somebody should look at', () => {
    const latencies = { firstTokenSeconds: 0.25, wholeSeconds: 1.5 };
    const calm = { offeredPerSecond: 12, refusedShare: 0, failedShare: 0.01, ...latencies };
    const failing = { offeredPerSecond: 8, refusedShare: 0.1, failedShare: 0.03, ...latencies };
    const frontends = [
      { id: 'west', traffic: calm },
      { id: 'east', traffic: failing },
    ];
    const sick = engine('b', { replicas: [{ address: '10.0.0.2:8000', ready: false }] });
    const engines = [engine('a'), { ...sick, traffic: { ...sick.traffic, failuresPerSecond: 1 } }];
    const rows = dashboard({ ...empty, frontends, engines }).match(/<tr>.*?<\/tr>/g)!;
    const cells = (id: string) =>
      rows
        .find((row) => row.startsWith(`<tr><td>${id}<`))!
        .split('</td>')
        .map((cell) => cell.replace(/<strong class="odd">(.*)<\/strong>/, '!$1').replace(/<[^>]*>/g, ''))
        .slice(0, -1);
    expect(cells('west')).toEqual(['west', '0.0', '', '12.0', '0.0 %', '1.0 %', '250 ms', '1500 ms', '0']);
    expect(cells('east')).toEqual(['east', '0.0', '', '8.0', '!10.0 %', '!3.0 %', '250 ms', '1500 ms', '0']);
    expect(cells('a')).toEqual(['a', '–', '40.0', '0.2', '4.0 %', '123 ms', '–', '1.00', '1 of 1', '3', '']);
    expect(cells('b')).toEqual([
      'b',
      '–',
      '40.0',
      '!1.0',
      '4.0 %',
      '123 ms',
      '–',
      '0.00',
      '!0 of 1',
      '3',
      '',
    ]);
  });

  it('links every alarm to what its kind means', () => {
    const alarms = [{ id: 'penalty:d', sinceMs: atMs, message: 'engine d answers slowly' }];
    expect(dashboard({ ...empty, alarms })).toContain(
      '<li><a href="/runbook#penalty" title="what it means">penalty</a>: engine d answers slowly (for 0 s)</li>',
    );
  });

  it('lets a frontend stand out that is planned for, and that nobody reports of', () => {
    const latencies = { firstTokenSeconds: null, wholeSeconds: null };
    const silent = { offeredPerSecond: 0, refusedShare: null, failedShare: null, ...latencies };
    const demand = { frontendId: 'west', poolId: 'm', requestsPerSecond: 4, source: 'expected' } as Demand;
    const frontends = [{ id: 'west', traffic: silent }];
    const row =
      /<td class="n">4\.0<\/td><td>expected<\/td>.*<td class="n"><strong class="odd">0<\/strong><\/td><\/tr>/;
    expect(dashboard({ ...empty, frontends, demands: [demand] })).toMatch(row);
    expect(dashboard({ ...empty, frontends, demands: [{ ...demand, requestsPerSecond: 0 }] })).not.toContain(
      'odd"',
    );
  });

  it('shows of many engines and Envoys those of which there is something to say', () => {
    const engines = Array.from({ length: 60 }, (_, at) => engine(`e${at}`, at === 7 ? { drain: 0 } : {}));
    const envoy = { frontendId: 'west', version: '1.40.0', snapshot: { isNewest: true, lastCallAtMs: atMs } };
    const envoys = Array.from({ length: 60 }, (_, at) => {
      return { ...envoy, nodeId: `n${at}`, xds: at === 9 ? ('behind' as const) : ('all accepted' as const) };
    });
    const page = dashboard({ ...empty, engines, envoys });
    expect(page).toContain('<td>e7<');
    expect(page).not.toContain('<td>e8<');
    expect(page).toContain('<td>n9<');
    expect(page).not.toContain('<td>n8<');
    expect(page.match(/… and 59 more, of which there is nothing to say/g)).toHaveLength(2);
    expect(dashboard({ ...empty, engines: engines.slice(0, 50) })).toContain('<td>e8<');
  });

  it('says when not all decisions are followed', () => {
    expect(dashboard(empty)).not.toContain('steered');
    expect(dashboard({ ...empty, steered: 0 })).toContain('<strong>Nothing is steered (policy.mode');
  });

  it('names what keeps an engine below its capacity', () => {
    const engines = [engine('a', { penalty: 0.4, latencyFactor: 2.5, drain: 0 })];
    expect(dashboard({ ...empty, engines })).toContain('drained, penalty 40 %, 2.5 times as slow');
  });

  it('shows one of many pools, and of many engines those with weight', () => {
    const engineIds = Array.from({ length: 40 }, (_, index) => `engine-${index}`);
    const pools = Array.from({ length: 9 }, (_, index) => ({ id: `pool ${index}`, engineIds }));
    const overview = { ...empty, plan: plan('pool 3', 'engine-5'), pools };
    expect(dashboard(overview)).not.toContain('Weights of pool 3');
    const page = dashboard(overview, 'pool 3');
    expect(page).toContain('href="/?pool=pool%203"');
    expect(page).toContain('Weights of pool 3');
    expect(page).toContain('>engine-5<');
    expect(page).not.toContain('>engine-6<');
    expect(page).toContain('39 engines without weight are not shown.');
  });

  it('shows of a pool with many engines in use the largest weights of each row', () => {
    const engineIds = Array.from({ length: 30 }, (_, index) => `engine-${index}`);
    const one = plan('m', 'engine-0');
    const weights = engineIds.map((engineId, index) => ({ engineId, weight: (index + 1) / 465 }));
    const wide = { ...one, rows: [{ ...one.rows[0]!, weights }] };
    const page = dashboard({ ...empty, plan: wide, pools: [{ id: 'm', engineIds }] });
    expect(page).toMatch(
      /<td><div class="words">engine-29 <a [^>]*>6\.5 %<\/a>, engine-28 .* and 24 more<\/div>/,
    );
    expect(page).not.toContain('engine-23 ');
  });

  it('shows of many alarms some of each kind', () => {
    const alarm = (id: string) => ({ id, sinceMs: atMs, message: `the message of ${id}` });
    const down = Array.from({ length: 30 }, (_, index) => alarm(`replica-down:${index + 10}`));
    const page = dashboard({ ...empty, alarms: [...down, alarm('shedding:west')] });
    expect(page).toContain('the message of replica-down:14');
    expect(page).not.toContain('replica-down:15');
    expect(page).toMatch(/and 25 more of <a [^>]*>replica-down<\/a>: <a href="\/v1\/alarms">all</);
    expect(page).toContain('the message of shedding:west');
    expect(dashboard({ ...empty, alarms: down.slice(0, 20) })).toContain('replica-down:29');
  });

  it('takes names and messages for text', () => {
    const alarms = [{ id: 'config', sinceMs: atMs, message: '<script>alert' }];
    const envoys = [
      { nodeId: '<b>', frontendId: '"', version: '&', xds: 'no stream' as const, snapshot: null },
    ];
    const page = dashboard({ ...empty, alarms, envoys, engines: [engine('<i>')] });
    expect(page).not.toMatch(/<script>alert|<b>|<td><i>/);
    expect(page).toContain('&lt;script&gt;alert (for 0 s)');
  });
});
