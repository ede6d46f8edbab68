import { MAX_CLASSES, MAX_MODEL_NEEDS, MAX_NAME_BYTES, MAX_NEEDS } from '../../../wire/layout.js';
import { CLIENT_STEERING_HEADERS } from '../../../wire/names.js';
import { byId } from '../../collections.js';
import type { Engine, Pool } from '../../fleet/fleet.js';
import type { Need } from '../../fleet/needs.js';
import { meets, needsThatMatter } from '../../fleet/pools.js';
import { suggest } from '../../suggest.js';
import { buildNeeds, buildPools } from '../build/needs.js';
import type { Path } from '../problem.js';
import type { ConfigFile } from '../schema/schema.js';
import type { Partly } from '../schema/schema-type.js';
import type { Draft, Findings } from './findings.js';

type Entry = Partly<ConfigFile['needs'][string]>;
type Traits = Pick<Engine, 'id' | 'models' | 'labels'>;

const CLASS_CONDITIONS = ['header', 'hasHeader', 'path', 'tenant', 'serviceTier', 'priorityAbove'] as const;
/** Of needs, those that are told by the body. */
const BODY_CONDITIONS = ['body', 'promptTokens', 'totalTokens'] as const;
const CONDITIONS = ['header', 'hasHeader', 'path', 'tenant', ...BODY_CONDITIONS] as const;

type Report = (
  path: Path,
  message: string,
  options?: { readonly at?: 'key' | 'value'; readonly hint?: string | undefined },
) => void;

/**
 * Checks needs and aliases against engines and filter. Returns the pools that follow, undefined when needs are too
 * broken or too many to tell.
 */
export function checkNeeds(config: Draft, found: Findings): readonly Pool[] | undefined {
  const { faults } = found;
  const report: Report = (path, message, options) => found.problem(path, message, options);
  const engines = traitsOf(config);
  if (!faults.obscure('engines', ['models'])) {
    checkAliases(config, new Set(engines.flatMap(({ models }) => models)), report);
  }
  let areSound = true;
  const entries = Object.entries(config.needs ?? {});
  for (const [id, entry] of entries) {
    const problem: Report = (path, message, options) => {
      areSound = false;
      report(['needs', id, ...path], message, options);
    };
    if (entry?.when === undefined) {
      areSound = false;
      continue;
    }
    // The schema has told that the header's name is wrong.
    if (entry.when.header !== undefined && Object.keys(entry.when.header).length === 0) areSound = false;
    const when = ['needs', id, 'when'];
    if (faults.excuse(when, CONDITIONS)) areSound = false;
    else checkWhen(entry.when, config.filter, problem);
    const mayMeanEngines = faults.excuse(['needs', id], ['engines', 'refuse']);
    if (mayMeanEngines || faults.obscure('engines', ['labels'])) areSound = false;
    else checkEngines(entry, engines, problem);
  }
  checkClasses(config, faults, report);
  const rules = Object.keys(config.classes ?? {}).length;
  if (entries.length + rules > MAX_NEEDS) {
    areSound = false;
    report(['needs'], `there are ${entries.length}, and ${rules} classes; ${MAX_NEEDS} are the most`, {
      at: 'key',
    });
  }
  if (!areSound) return undefined;
  const needs = buildNeeds((config.needs ?? {}) as ConfigFile['needs']);
  for (const need of needs) {
    if (need.labels === null || engines.some((engine) => meets(engine, need))) continue;
    report(['needs', need.id, 'engines'], 'no engine has all of these labels', {
      at: 'key',
      hint: 'to refuse requests that carry the need, write refuse: true instead',
    });
  }
  return checkCounts(engines, needs, report)
    ? longEnough(buildPools(engines, needs).pools, report)
    : undefined;
}

function checkClasses(config: Draft, faults: Findings['faults'], report: Report): void {
  const entries = Object.entries(config.classes ?? {});
  for (const [id, entry] of entries) {
    const when = ['classes', id, 'when'];
    if (entry?.when === undefined || faults.excuse(when, CLASS_CONDITIONS)) continue;
    checkCondition(entry.when, CLASS_CONDITIONS, config.filter, (path, message, options) =>
      report(['classes', id, ...path], message, options),
    );
    for (const key of ['serviceTier', 'priorityAbove'] as const) {
      if (entry.when[key] === undefined || config.filter?.readBodies !== false) continue;
      report(['classes', id, 'when', key], 'bodies are not read', {
        at: 'key',
        hint: 'set filter.readBodies: true',
      });
    }
  }
  const priorities = new Set([0, ...entries.map(([, entry]) => entry?.priority)]);
  if (priorities.size > MAX_CLASSES) {
    report(
      ['classes'],
      `there are ${priorities.size - 1} priorities besides 0; ${MAX_CLASSES - 1} are the most`,
      {
        at: 'key',
      },
    );
  }
}

function traitsOf(config: Draft): readonly Traits[] {
  return (config.engines ?? [])
    .flatMap((engine) =>
      engine?.id === undefined
        ? []
        : [
            {
              id: engine.id,
              models: (engine.models ?? []).filter((model) => model !== undefined),
              labels: (engine.labels ?? {}) as Readonly<Record<string, string>>,
            },
          ],
    )
    .sort(byId);
}

function checkAliases({ aliases = {} }: Draft, models: ReadonlySet<string>, report: Report): void {
  for (const [name, model] of Object.entries(aliases)) {
    if (models.has(name)) report(['aliases', name], 'is the name of a model itself', { at: 'key' });
    if (model === undefined || models.has(model)) continue;
    report(['aliases', name], `unknown model ${JSON.stringify(model)}`, { hint: suggest(model, models) });
  }
}

function checkWhen(when: NonNullable<Entry['when']>, filter: Draft['filter'], problem: Report): void {
  checkCondition(when, CONDITIONS, filter, problem);
  for (const key of BODY_CONDITIONS) {
    if (when[key] === undefined || filter?.readBodies !== false) continue;
    problem(['when', key], 'bodies are not read', { at: 'key', hint: 'set filter.readBodies: true' });
  }
}

/** What holds of conditions of needs and of classes. */
function checkCondition<Key extends string>(
  when: Pick<NonNullable<Entry['when']>, 'header' | 'hasHeader' | 'tenant'> & {
    readonly [key in Key]?: unknown;
  },
  known: readonly Key[],
  filter: Draft['filter'],
  problem: Report,
): void {
  const given = known.filter((key) => when[key] !== undefined);
  if (given.length !== 1) {
    const hint = `give exactly one of ${known.join(', ')}`;
    problem(['when'], given.length === 0 ? 'says nothing' : `gives ${given.join(' and ')}`, { hint });
  }
  const names = Object.keys(when.header ?? {});
  if (names.length > 1) problem(['when', 'header'], `names ${names.length} headers; name one`);
  for (const name of [...names, ...(when.hasHeader === undefined ? [] : [when.hasHeader])]) {
    if (!CLIENT_STEERING_HEADERS.includes(name.toLowerCase())) continue;
    problem(['when'], `${name} is removed from requests before the filter sees it`);
  }
  if (when.tenant !== undefined && filter?.tenantHeader === undefined) {
    problem(['when', 'tenant'], 'nothing says what the tenant is', { hint: 'set filter.tenantHeader' });
  }
}

function checkEngines(entry: Entry, engines: readonly Traits[], problem: Report): void {
  const labels = Object.entries(entry.engines ?? {});
  if (entry.refuse === true && entry.engines !== undefined) {
    problem(['refuse'], 'give either engines or refuse', { at: 'key' });
  } else if (entry.refuse !== true && labels.length === 0) {
    problem([], 'does not say which engines meet it', { at: 'key', hint: 'give engines: {label: value}' });
  }
  const known = new Set(engines.flatMap((engine) => Object.keys(engine.labels)));
  for (const [label, wanted] of labels) {
    if (!known.has(label)) {
      const hint = suggest(label, known) ?? (known.size > 0 ? `known: ${[...known].join(', ')}` : undefined);
      problem(['engines', label], `no engine has a label ${JSON.stringify(label)}`, { at: 'key', hint });
      continue;
    }
    const values = new Set(engines.flatMap((engine) => engine.labels[label] ?? []));
    const list = (typeof wanted === 'string' ? [wanted] : (wanted ?? [])).filter(
      (value) => value !== undefined,
    );
    if (list.length === 0) problem(['engines', label], 'is empty');
    for (const value of list) {
      if (values.has(value)) continue;
      const hint = suggest(value, values) ?? `known: ${[...values].join(', ')}`;
      problem(['engines', label], `no engine has ${label}: ${value}`, { hint });
    }
  }
}

/** Whether filters can tell apart the needs that make a difference to each model. */
function checkCounts(engines: readonly Traits[], needs: readonly Need[], report: Report): boolean {
  let isGood = true;
  for (const model of new Set(engines.flatMap(({ models }) => models))) {
    const ids = needsThatMatter(model, engines, needs).map(({ id }) => id);
    if (ids.length <= MAX_MODEL_NEEDS) continue;
    isGood = false;
    report(
      ['needs'],
      `${ids.length} needs make a difference to ${model}: up to ${2 ** ids.length} pools, more than ${2 ** MAX_MODEL_NEEDS}`,
      {
        at: 'key',
        hint: `at most ${MAX_MODEL_NEEDS} of ${ids.join(', ')} may be met by some of its engines and not by others; merge some, or split the model`,
      },
    );
  }
  return isGood;
}

function longEnough(pools: readonly Pool[], report: Report): readonly Pool[] {
  for (const { id } of pools) {
    if (Buffer.byteLength(id) <= MAX_NAME_BYTES) continue;
    report(['needs'], `the pool id ${id} has more than ${MAX_NAME_BYTES} characters`, {
      at: 'key',
      hint: 'shorten the names of the needs',
    });
  }
  return pools;
}
