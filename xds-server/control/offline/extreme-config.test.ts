import { afterAll, expect, test } from 'vitest';
import { loadConfig } from '../../config/load.js';
import { ConfigError } from '../../config/problem.js';
import { configSchema } from '../../config/schema/schema.js';
import { Optimizer } from '../../optimizer/index.js';
import { offlineInput } from './offline.js';

const optimizer = new Optimizer();
afterAll(() => optimizer.close());

interface Schema {
  readonly description?: unknown;
  readonly type?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly items?: Schema;
  readonly minimum?: number;
  readonly exclusiveMinimum?: number;
  readonly maximum?: number;
  readonly exclusiveMaximum?: number;
}

type Path = readonly (string | number)[];

/** Keys of `fleet` that stand for the names in mappings and the places in lists, by their section. */
const entries: Readonly<Record<string, Path>> = {
  frontends: [0],
  engines: [0],
  profiles: ['p'],
  demand: ['w', 'm'],
  network: ['w', 'b'],
  needs: ['long'],
  classes: ['low'],
  policy: [0],
};

const fleet = () => ({
  server: { stateFile: 'there-is-none.json' },
  frontends: [{ id: 'w', region: 'west' }],
  engines: [
    {
      id: 'a',
      region: 'west',
      models: ['m'],
      profile: 'p',
      endpoints: ['10.0.0.1:1'],
      labels: { size: 'l' },
    },
    { id: 'b', region: 'west', models: ['m'], profile: 'q', endpoints: ['10.0.0.2:1'] },
  ],
  network: { rttMs: { w: { a: 1, b: 50 } } },
  profiles: {
    p: {
      work: { secondsPerRequest: 0.01, secondsPerUncachedPromptToken: 1e-4, secondsPerOutputToken: 1e-3 },
      ttft: { baseSeconds: 0.05, secondsPerUncachedPromptToken: 1e-4, queueSeconds: 0.1 },
      tbot: { baseSeconds: 0.02, kappa: 0.5 },
    },
    q: { requestsPerSecond: 12 },
  },
  demand: { w: { models: { m: { requestsPerSecond: 8, promptTokens: 500, outputTokens: 100 } } } },
  needs: { long: { when: { promptTokens: 1000 }, engines: { size: 'l' } } },
  classes: { low: { when: { priorityAbove: 5 }, priority: 1 } },
  policy: {
    bounds: [{ frontend: 'w', pool: 'm', engine: 'a', min: 0.1, max: 0.9 }],
    minShares: [{ pool: 'm', priority: 0, share: 0.5 }],
  },
});

/** Places of all numbers, with the least and the largest that the schema accepts. */
function* numbers(schema: Schema, path: Path): Generator<readonly [Path, readonly number[]]> {
  if (schema.type === 'number' || schema.type === 'integer') yield [path, limitsOf(schema)];
  for (const [key, value] of Object.entries(schema.properties ?? {})) yield* numbers(value, [...path, key]);
  const inner = [schema.additionalProperties, schema.items].find((it) => typeof it === 'object');
  if (inner) {
    const steps = entries[path[0]!] ?? [];
    const step = steps[path.filter((key) => steps.includes(key)).length];
    if (step !== undefined) yield* numbers(inner as Schema, [...path, step]);
  }
}

function limitsOf(schema: Schema): readonly number[] {
  const { minimum, exclusiveMinimum, maximum, exclusiveMaximum } = schema;
  return [
    minimum ?? Math.max(exclusiveMinimum ?? Number.MIN_SAFE_INTEGER, Number.MIN_VALUE),
    maximum ?? (exclusiveMaximum ?? Number.MAX_SAFE_INTEGER) - 1e-9,
  ];
}

function withNumber(path: Path, value: number): unknown {
  const root: unknown = fleet();
  let node = root as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) {
    node[key] ??= {};
    node = node[key] as typeof node;
  }
  node[path.at(-1)!] = value;
  // A profile has either.
  if (path.at(-1) === 'requestsPerSecond') delete node.work;
  return root;
}

test('every number that the schema accepts can be planned with, unless another check refuses it', async () => {
  const tried: string[] = [];
  for (const [path, limits] of numbers(configSchema, [])) {
    for (const limit of limits) {
      const where = `${path.join('.')}: ${limit}`;
      try {
        const config = loadConfig('fleet.yaml', () => JSON.stringify(withNumber(path, limit)));
        const solution = await optimizer.solveChecked(await offlineInput(config));
        expect(solution.rows.length, where).toBeGreaterThan(0);
        tried.push(where);
      } catch (error) {
        if (!(error instanceof ConfigError)) throw new Error(where, { cause: error });
      }
    }
  }
  expect(tried.length).toBeGreaterThan(60);
  expect(tried).toContain('profiles.p.requestsPerSecond: 0.0001');
});
