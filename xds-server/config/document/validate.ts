import { Ajv, type ErrorObject } from 'ajv';
import { closest, suggest } from '../../suggest.js';
import type { ConfigProblem, Path } from '../problem.js';
import { type ConfigFile, configSchema } from '../schema/schema.js';
import type { Partly } from '../schema/schema-type.js';
import { ANY_KEY, Faults } from './faults.js';
import { withoutUnit } from './units.js';
import { variableHint } from './variables.js';
import type { YamlSource } from './yaml-source.js';

const ajv = new Ajv({
  allErrors: true,
  strict: true,
  useDefaults: true,
  verbose: true,
  allowUnionTypes: true,
});
ajv.addVocabulary(['hint']);

export interface Validated<T = ConfigFile> {
  /** Problems that the schema finds; when there are none, `value` is a whole `T`. */
  readonly problems: readonly ConfigProblem[];
  readonly faults: Faults;
  /** The document with defaults filled in and invalid values cut out, for the checks that follow. */
  readonly value: Partly<T>;
}

/** Checks a configuration against its schema. */
export const validate = validator<ConfigFile>(configSchema);

/** A check of documents against a schema; `T` is what the schema accepts. */
export function validator<T>(schema: object): (source: YamlSource) => Validated<T> {
  const check = ajv.compile(schema);
  return (source) => {
    const value = source.toValue();
    if (check(value)) return { problems: [], faults: new Faults([]), value: value as Partly<T> };
    const errors = withoutEchoes(check.errors ?? []);
    const problems = errors.map((error) => describe(source, error));
    const faults = new Faults(errors.map(faultOf));
    for (const error of errors) {
      if (error.keyword !== 'required' && error.keyword !== 'additionalProperties') cut(value, pathOf(error));
    }
    const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
    return { problems, faults, value: isMapping ? (value as Partly<T>) : ({} as Partly<T>) };
  };
}

/** Drops errors that another one implies: a misspelt key is not also a missing one. */
function withoutEchoes(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const misspelt = new Set(
    errors
      .filter((error) => error.keyword === 'additionalProperties')
      .map((error) => `${error.instancePath} ${meantKey(error)}`),
  );
  return errors.filter(
    ({ keyword, instancePath, params }) =>
      keyword !== 'propertyNames' &&
      !(keyword === 'required' && misspelt.has(`${instancePath} ${params.missingProperty}`)),
  );
}

/** Where the fault is: at the key that a misspelt one is close to. */
function faultOf(error: ErrorObject): Path {
  const path = pathOf(error);
  if (error.keyword === 'required') return [...path, String(error.params.missingProperty)];
  return error.keyword === 'additionalProperties' ? [...path, meantKey(error) ?? ANY_KEY] : path;
}

/** The known key that an unknown one is close to. */
function meantKey(error: ErrorObject): string | undefined {
  return closest(String(error.params.additionalProperty), knownKeys(error));
}

function knownKeys(error: ErrorObject): readonly string[] {
  return Object.keys((error.parentSchema as { properties?: object }).properties ?? {});
}

function describe(source: YamlSource, error: ErrorObject): ConfigProblem {
  const path = pathOf(error);
  const shown = path.at(-1) === 'token' ? 'this' : show(error.propertyName ?? error.data);
  const { hint } = error.parentSchema as { hint?: string };
  switch (error.keyword) {
    case 'additionalProperties': {
      const key = String(error.params.additionalProperty);
      const known = knownKeys(error);
      return source.problem([...path, key], 'unknown key', {
        at: 'key',
        hint:
          key === '<<'
            ? 'mappings are not merged; write the keys out'
            : (suggest(key, known) ?? `known keys: ${known.join(', ')}`),
      });
    }
    case 'required':
      return source.problem(path, `missing key ${JSON.stringify(error.params.missingProperty)}`);
    case 'type':
      return source.problem(path, `must be ${typeName(error.params.type)}, not ${shown}`, {
        hint: shown === 'this' ? undefined : typeHint(source, error, path),
      });
    case 'enum':
      return source.problem(path, `must be one of ${error.params.allowedValues.join(', ')}`, {
        hint: suggest(String(error.data), error.params.allowedValues),
      });
    case 'minimum':
    case 'maximum':
    case 'exclusiveMinimum':
    case 'exclusiveMaximum':
      return source.problem(
        path,
        `must be ${comparison[error.params.comparison as keyof typeof comparison]} ${error.params.limit}, not ${shown}`,
      );
    case 'pattern':
      return source.problem(path, `${shown} has a wrong form`, {
        hint: (shown === 'this' ? undefined : variableHint(error.data)) ?? hint,
      });
    case 'minItems':
    case 'minProperties':
      return source.problem(path, `must have at least ${error.params.limit}`);
    default:
      return source.problem(path, error.message ?? error.keyword);
  }
}

const comparison = { '>=': 'at least', '<=': 'at most', '>': 'above', '<': 'below' };

/** A JSON pointer as a path; a wrong property name is found at the property. */
function pathOf(error: ErrorObject): Path {
  const steps = error.instancePath
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((step) => (/^\d+$/.test(step) ? Number(step) : step));
  return error.propertyName === undefined ? steps : [...steps, error.propertyName];
}

function typeName(type: string | readonly string[]): string {
  if (typeof type !== 'string') return type.map((name) => typeName(name)).join(' or ');
  const names: Record<string, string> = {
    object: 'a mapping',
    array: 'a list',
    string: 'a text',
    number: 'a number',
    integer: 'a whole number',
    boolean: 'true or false',
  };
  return names[type] ?? type;
}

function typeHint(
  source: YamlSource,
  { params, data, parentSchema }: ErrorObject,
  path: Path,
): string | undefined {
  const type: string = [params.type].flat()[0];
  const { hint, required } = parentSchema as { hint?: string; required?: readonly string[] };
  if (path.length === 0 && data === null && required !== undefined) {
    return `nothing is written here; begin with ${required.join(' and ')}`;
  }
  if (typeof data === 'string' && ['number', 'integer'].includes(type)) return numberHint(data, path);
  if (type === 'boolean' && typeof data === 'string') return truthHint(data);
  if (type === 'string' && ['number', 'boolean'].includes(typeof data)) {
    return hint?.startsWith('such as') ? hint : `write "${source.written(path) ?? data}" in quotes`;
  }
  if (type === 'string' && data !== null && typeof data === 'object') {
    return 'put a text in quotes that holds [ ] { } or a colon and a space';
  }
  if (type === 'array' && data !== null && typeof data !== 'object') return `write [${data}]`;
  return undefined;
}

function numberHint(data: string, path: Path): string | undefined {
  if (data.trim() !== '' && Number.isFinite(Number(data))) return `write ${data.trim()} without quotes`;
  return variableHint(data) ?? withoutUnit(data, path);
}

/** Earlier versions of YAML had more words for it, and quotes make a text of any. */
function truthHint(data: string): string | undefined {
  const word = data.trim().toLowerCase();
  if (['true', 'yes', 'on', 'y'].includes(word)) return 'write true';
  if (['false', 'no', 'off', 'n'].includes(word)) return 'write false';
  return undefined;
}

/** A short rendering of a value; never a long or nested one. */
function show(data: unknown): string {
  if (data === null || data === undefined) return 'nothing';
  if (Array.isArray(data)) return 'a list';
  if (typeof data === 'object') return 'a mapping';
  if (typeof data === 'number') return String(data);
  const text = JSON.stringify(data);
  const short = text.length > 60 ? `${text.slice(0, 57)}…` : text;
  return typeof data === 'string' ? `the text ${short}` : short;
}

/** Cuts the value at `path` out; list items become undefined, so that indexes stay right. */
function cut(root: unknown, path: Path): void {
  let parent = root;
  for (const step of path.slice(0, -1)) {
    if (typeof parent !== 'object' || parent === null) return;
    parent = (parent as Record<string | number, unknown>)[step];
  }
  const last = path.at(-1);
  if (last === undefined || typeof parent !== 'object' || parent === null) return;
  if (Array.isArray(parent)) parent[last as number] = undefined;
  else delete (parent as Record<string | number, unknown>)[last];
}
