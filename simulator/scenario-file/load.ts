import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { validator } from '../../xds-server/config/document/validate.js';
import { YamlSource } from '../../xds-server/config/document/yaml-source.js';
import { ConfigError, type ConfigProblem, type Path } from '../../xds-server/config/problem.js';
import { messageOf } from '../../xds-server/message-of.js';
import { suggest } from '../../xds-server/suggest.js';
import { CLASS_MEASURES } from '../measures/measures.js';
import { DEFAULT_CLIENT, DEFAULT_SLO, type Scenario, type ScenarioPool } from '../scenario.js';
import { buildFleet } from './fleet.js';
import { KNOWN_FLEET_TIMEOUT_SECONDS } from './known-fleet.js';
import type { Problems } from './problems.js';
import { type AssertionEntry, type ScenarioFile, scenarioSchema } from './schema.js';
import { buildFault } from './times.js';
import { Workloads } from './workloads.js';

/** A scenario, and what its file says about trying it. */
export interface ScenarioPlan {
  readonly scenario: Scenario;
  readonly seeds?: number;
  readonly policies?: readonly string[];
  readonly assertions: readonly AssertionEntry[];
}

const validate = validator<ScenarioFile>(scenarioSchema);

/**
 * Reads and checks a scenario file, whose name without its end is the scenario's id.
 *
 * @param policies names that may be asked for
 * @throws {ConfigError} with every problem there is
 */
export function loadScenario(file: string, policies: readonly string[]): ScenarioPlan {
  const source = new YamlSource(read(file), file);
  const { value, problems: found } = validate(source);
  if (found.length > 0)
    throw new ConfigError('WARDROP_CONFIG_INVALID', isConfiguration(source) ? [isNone(source)] : found);
  const entry = value as ScenarioFile;
  const problems: ConfigProblem[] = [];
  const listener: Problems = {
    add: (path, message, hint) => problems.push(source.problem(path, message, { hint })),
    unknown: (path, what, name, known) =>
      problems.push(
        source.problem(path, `there is no ${what} ${JSON.stringify(name)}`, {
          hint: suggest(name, known) ?? `there are ${known.join(', ')}`,
        }),
      ),
  };
  const scenario = buildScenario(entry, file, listener);
  const classIds = scenario?.classes.map(({ id }) => id) ?? [];
  for (const [index, assertion] of entry.assertions.entries()) {
    const { policy, measure, class: classId, timesThatOf, beyondThatOf, atLeast, atMost } = assertion;
    const path = ['assertions', index];
    if (scenario !== undefined && classId !== undefined && !classIds.includes(classId))
      listener.unknown([...path, 'class'], 'class', classId, classIds);
    if (classId !== undefined && !(CLASS_MEASURES as readonly string[]).includes(measure))
      listener.add([...path, 'measure'], 'is not told of classes', `use one of ${CLASS_MEASURES.join(', ')}`);
    for (const [key, name] of Object.entries({ policy, timesThatOf, beyondThatOf })) {
      if (name !== undefined && !policies.includes(name))
        listener.unknown([...path, key], 'policy', name, policies);
    }
    if (atLeast === undefined && atMost === undefined) listener.add(path, 'must have atLeast or atMost');
    if (timesThatOf !== undefined && beyondThatOf !== undefined)
      listener.add(path, 'must not have both timesThatOf and beyondThatOf');
  }
  for (const [index, name] of (entry.policies ?? []).entries()) {
    if (!policies.includes(name)) listener.unknown(['policies', index], 'policy', name, policies);
  }
  if (scenario === undefined || problems.length > 0)
    throw new ConfigError(
      'WARDROP_CONFIG_INVALID',
      problems.sort((a, b) => a.line - b.line || a.column - b.column),
    );
  return {
    scenario,
    assertions: entry.assertions,
    ...(entry.seeds === undefined ? {} : { seeds: entry.seeds }),
    ...(entry.policies === undefined ? {} : { policies: entry.policies }),
  };
}

/** Whether it is the file of a control server, which is easily given instead of a scenario. */
function isConfiguration(source: YamlSource): boolean {
  const { about, engines } = Object(source.toValue()) as { about?: unknown; engines?: unknown };
  return (
    about === undefined && Array.isArray(engines) && engines.some((engine) => 'models' in Object(engine))
  );
}

function isNone(source: YamlSource): ConfigProblem {
  return source.problem([], 'is a configuration of Wardrop and no scenario', {
    hint: `write one with about, seconds and config: ${basename(source.file)}`,
  });
}

function buildScenario(entry: ScenarioFile, file: string, problems: Problems): Scenario | undefined {
  const { about, warmupSeconds, seconds, settledFrom = warmupSeconds, signals } = entry;
  const { pools: _, ...everywhere } = entry.slo;
  const workloads = new Workloads(entry.workloads, problems);
  const fleet = buildFleet(entry, dirname(resolve(file)), workloads, problems);
  if (fleet === undefined) return undefined;
  const endAt = warmupSeconds + seconds;
  for (const { path, at } of [{ path: ['settledFrom'], at: settledFrom }, ...beginningsOf(entry)])
    if (at >= endAt) problems.add(path, `must be before the end of the run, ${endAt} s`);
  const faults = entry.faults.flatMap((fault, index) => {
    const built = buildFault(fault, ['faults', index], fleet, problems);
    return built === undefined ? [] : [built];
  });
  const steps = demandsOf(entry).flatMap((demand) => demand.entry.steps.map(({ at }) => at));
  const changes = [...steps, ...faults.flatMap(({ from, until }) => [from, until])].filter(
    (at) => at < endAt,
  );
  return {
    id: basename(file).replace(/\.ya?ml$/, ''),
    about,
    ...fleet,
    pools: withSlos(fleet.pools, entry.slo, problems),
    ...(changes.length === 0 ? {} : { lastChangeAt: Math.max(...changes) }),
    warmupSeconds,
    seconds,
    settledFrom,
    faults,
    slo: { ...DEFAULT_SLO, ...everywhere },
    client: {
      ...DEFAULT_CLIENT,
      ...(entry.config === undefined ? {} : { timeoutSeconds: KNOWN_FLEET_TIMEOUT_SECONDS }),
      ...entry.client,
    },
    signals,
  };
}

/** What the file says of what comes, of frontends and of their pools. */
function demandsOf({ frontends = [] }: ScenarioFile) {
  return frontends.flatMap((frontend, index) => [
    { path: ['frontends', index], entry: frontend },
    ...Object.entries(frontend.pools ?? {}).map(([id, entry]) => ({
      path: ['frontends', index, 'pools', id],
      entry,
    })),
  ]);
}

/** When things begin to happen: what came after the end would never do so, without a word. */
function beginningsOf(file: ScenarioFile): { readonly path: Path; readonly at: number }[] {
  return [
    ...file.faults.map(({ from }, index) => ({ path: ['faults', index, 'from'], at: from })),
    ...demandsOf(file).flatMap(({ path, entry: { steps, bursts } }) => [
      ...steps.map(({ at }, index) => ({ path: [...path, 'steps', index, 'at'], at })),
      ...(bursts === undefined ? [] : [{ path: [...path, 'bursts', 'from'], at: bursts.from }]),
    ]),
  ];
}

/** What the file says of a pool, else of all, else what is known of the pool. */
function withSlos(
  pools: readonly ScenarioPool[],
  { pools: own, ...everywhere }: ScenarioFile['slo'],
  problems: Problems,
): ScenarioPool[] {
  const ids = pools.map(({ id }) => id);
  for (const id of Object.keys(own))
    if (!ids.includes(id)) problems.unknown(['slo', 'pools', id], 'pool', id, ids);
  const saysAll = everywhere.ttftSeconds !== undefined && everywhere.e2eSeconds !== undefined;
  return pools.map(({ slo: known, ...pool }) => {
    const times = own[pool.id];
    if (times === undefined && (known === undefined || saysAll)) return pool;
    return { ...pool, slo: { ...DEFAULT_SLO, ...known, ...everywhere, ...times } };
  });
}

function read(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const message = `cannot be read: ${messageOf(error)}`;
    throw new ConfigError('WARDROP_CONFIG_UNREADABLE', [{ file, line: 1, column: 1, path: '', message }]);
  }
}
