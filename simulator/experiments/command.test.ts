import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { stringify } from 'yaml';
import { filterModule } from '../filter-host/build.js';
import { runCompare } from './command.js';

// Runs whole scenarios, on a machine that may be busy.
vi.setConfig({ testTimeout: 60_000 });

let folder: string;
let printed: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'wardrop-compare-'));
  printed = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    printed += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
});

afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true });
});

describe('a comparison', () => {
  it('writes every figure of every scenario and policy as table, JSON, CSV and page', async () => {
    const file = (name: string) => join(folder, name);
    await runCompare({
      scenarios: ['relaxed'],
      policies: ['nearest', 'consistent-hash'],
      seeds: 2,
      seconds: 5,
      json: file('a.json'),
      csv: file('a.csv'),
      html: file('a.html'),
    });
    const { scenarios } = JSON.parse(readFileSync(file('a.json'), 'utf8'));
    expect(Object.keys(scenarios)).toEqual(['relaxed']);
    expect(Object.keys(scenarios.relaxed)).toEqual(['nearest', 'consistent-hash']);
    expect(scenarios.relaxed['consistent-hash']).toMatchObject({
      meanE2eMs: expect.any(Number),
      p99E2eMs: expect.any(Number),
      p50TtftMs: expect.any(Number),
      p99TtftMs: expect.any(Number),
      goodput: expect.any(Number),
      cacheHitShare: expect.any(Number),
      movesPerTv: null,
      oscillation: { amplitude: 0, reversals: expect.toSatisfy((value) => value === 0 || value === null) },
      shedShare: 0,
      seeds: 2,
    });
    const lines = readFileSync(file('a.csv'), 'utf8').trim().split('\n');
    expect(lines).toHaveLength(3);
    expect(new Set(lines.map((line) => line.split(',').length)).size).toBe(1);
    const page = readFileSync(file('a.html'), 'utf8');
    expect(page).toContain('<svg');
    expect(page).not.toMatch(/src=|href=(?!"#)|NaN/);
    expect(printed).toContain('consistent-hash');
  });

  it('tells of each pool of a configuration, and the SLO of each', async () => {
    const file = (name: string) => join(folder, name);
    const engine = (id: string, models: string[], port: number) => ({
      ...{ id, region: 'r', models, profile: 'p', endpoints: [`10.0.0.1:${port}`] },
    });
    const fleet = {
      frontends: [{ id: 'west', region: 'r' }],
      engines: [engine('a', ['big'], 80), engine('b', ['big', 'small'], 81), engine('c', ['small'], 82)],
      profiles: { p: { requestsPerSecond: 60, ttft: { baseSeconds: 0.02 }, tbot: { baseSeconds: 0.005 } } },
      demand: { west: { models: { big: { requestsPerSecond: 20 } } } },
    };
    const mine = {
      about: 'Two models.',
      config: 'fleet.yaml',
      frontends: [{ id: 'west', pools: { small: { requestsPerSecond: 30 } } }],
      slo: { pools: { big: { e2eSeconds: 9 } } },
      ...{ seconds: 10, warmupSeconds: 5, seeds: 1, policies: ['round-robin', 'wardrop'] },
      assertions: [{ policy: 'wardrop', measure: 'goodput', class: 'big', atLeast: 0.9 }],
    };
    writeFileSync(file('fleet.yaml'), stringify(fleet));
    writeFileSync(file('mine.yaml'), stringify(mine));
    filterModule();
    await runCompare({ scenarios: [file('mine.yaml')], json: file('a.json'), html: file('a.html') });
    const { scenarios, assertions } = JSON.parse(readFileSync(file('a.json'), 'utf8'));
    expect(Object.keys(scenarios.mine.wardrop.byClass)).toEqual(['big', 'small']);
    expect(assertions).toMatchObject([{ result: 'holds' }]);
    // Of small, three times what an idle engine takes; of big, what the scenario says.
    expect(printed).toMatch(
      /SLO: of big first token within 100 ms, complete within 9000 ms; of small first token within 100 ms, complete within \d+ ms\./,
    );
    expect(printed).toMatch(/round-robin +small +\d/);
    expect(readFileSync(file('a.html'), 'utf8')).toContain('shares of requests of west, small');
  });

  it.each([
    [{ scenarios: ['nowhere'] }, /no scenario or file "nowhere"; there are all-streamed/],
    [{ policies: ['luck'] }, /no policy "luck"; there are round-robin/],
    [{ scenarios: ['three-region'] }, /no scenario or file "three-region"; did you mean "three-regions"\?/],
    [{ json: 'none/there/a.json' }, /none\/there\/a.json: cannot be written: no such file/],
  ])('says what is wrong before anything is run: %j', async (options, message) => {
    await expect(runCompare(options)).rejects.toThrow(message);
    expect(process.stderr.write).not.toHaveBeenCalled();
  });
});
