import { parseAddress } from '../../fleet/address.js';
import type { Pool } from '../../fleet/fleet.js';
import { closest, didYouMean } from '../../suggest.js';
import type { Faults } from '../document/faults.js';
import { variableHint } from '../document/variables.js';
import type { YamlSource } from '../document/yaml-source.js';
import { type ConfigProblem, formatPath, MOST_TOLD, type Path } from '../problem.js';
import type { ConfigFile } from '../schema/schema.js';
import type { Partly } from '../schema/schema-type.js';

/** What is left of a document when all that is wrong is cut out. */
export type Draft = Partly<ConfigFile>;

/** What to write for an address to listen on. */
export const HOW_TO_LISTEN = 'use the ip:port of an interface, or 0.0.0.0:port for all';

/** What names refer to. */
type Kind = 'frontend' | 'engine' | 'profile' | 'model' | 'pool';

/** What the checks of all sections have found, and the names that they share. */
export class Findings {
  readonly problems: ConfigProblem[] = [];
  /** Things that are legal but probably not meant. */
  readonly warnings: ConfigProblem[] = [];
  readonly faults: Faults;
  readonly frontendIds: ReadonlySet<string>;
  readonly engineIds: ReadonlySet<string>;
  readonly models: ReadonlySet<string>;
  /** Undefined when they cannot be told, or are not yet. */
  pools: readonly Pool[] | undefined;
  readonly #source: YamlSource;
  /** Lists with an id that two have, of which one may have been meant to have another. */
  readonly #repeated = new Set<string>();
  /** What seems to be meant by names that are not known, by kind and name. */
  readonly #meant = new Map<string, string | undefined>();

  constructor(config: Draft, source: YamlSource, faults: Faults) {
    this.#source = source;
    this.faults = faults;
    this.frontendIds = idsOf(config.frontends);
    this.engineIds = idsOf(config.engines);
    this.models = new Set(
      config.engines?.flatMap((engine) => engine?.models ?? []).filter((model) => model !== undefined),
    );
  }

  problem(
    path: Path,
    message: string,
    options: { at?: 'key' | 'value'; hint?: string | undefined } = {},
  ): void {
    this.problems.push(this.#source.problem(path, message, options));
  }

  warn(path: Path, message: string, hint?: string): void {
    this.warnings.push(this.#source.problem(path, message, { hint }));
  }

  /** Whether a problem with the value at `path` is told already. */
  isFaulty(path: Path): boolean {
    const text = formatPath(path);
    return this.problems.some((problem) => problem.path === text);
  }

  /** Whether the file has a value at `path`, valid or not. */
  isWritten(path: Path): boolean {
    return this.#source.has(path);
  }

  /** `hint` tells what to write where there is no address at all. */
  address(path: Path, text: string | undefined, hint?: string): string | undefined {
    if (text === undefined) return undefined;
    const parsed = parseAddress(text);
    if ('address' in parsed) return parsed.address;
    this.problem(path, parsed.error, { hint: variableHint(text) ?? parsed.hint ?? hint });
    return undefined;
  }

  /** Whether it is the first with that name. */
  once(seen: Map<string, Path>, name: string, path: Path, what: string): boolean {
    const first = seen.get(name);
    if (first === undefined) {
      seen.set(name, path);
      return true;
    }
    const { line, path: firstPath } = this.#source.problem(first, '');
    this.problem(path, `${what} is already used at ${firstPath}, line ${line}`);
    return false;
  }

  /** Every id of a list belongs to one. */
  onceEach(
    list: 'frontends' | 'engines',
    items: readonly ({ readonly id?: string | undefined } | undefined)[] = [],
  ): void {
    const seen = new Map<string, Path>();
    for (const [index, item] of items.entries()) {
      if (item?.id === undefined) continue;
      const path = [list, index, 'id'];
      if (!this.once(seen, item.id, path, `id ${JSON.stringify(item.id)}`)) this.#repeated.add(list);
    }
  }

  /** Whether there is one of that name, as far as can be told. */
  known(
    path: Path,
    kind: Kind,
    name: string,
    known: ReadonlySet<string>,
    at: 'key' | 'value' = 'value',
  ): boolean {
    if (known.has(name) || this.#mayHaveMore(kind)) return true;
    const meant = this.meant(kind, name, known);
    const few = known.size > 0 && known.size <= 10 ? `known: ${[...known].join(', ')}` : undefined;
    const hint = meant === undefined ? few : didYouMean(meant);
    this.problem(path, `unknown ${kind} ${JSON.stringify(name)}`, { at, hint });
    return false;
  }

  /** The known name that is closest, if any is close; looked for once, and only for as many names as are told of. */
  meant(kind: Kind, name: string, known: ReadonlySet<string>): string | undefined {
    const key = `${kind} ${name}`;
    if (!this.#meant.has(key) && this.#meant.size < MOST_TOLD) this.#meant.set(key, closest(name, known));
    return this.#meant.get(key);
  }

  knownPool(path: Path, pool: string, at: 'key' | 'value' = 'value'): boolean {
    if (this.pools === undefined) return true;
    return this.known(path, 'pool', pool, new Set(this.pools.map(({ id }) => id)), at);
  }

  /** Whether there may be names of a kind that cannot be read. */
  #mayHaveMore(kind: Kind): boolean {
    switch (kind) {
      case 'frontend':
        return this.#repeated.has('frontends') || this.faults.obscure('frontends', ['id']);
      case 'engine':
        return this.#repeated.has('engines') || this.faults.obscure('engines', ['id']);
      case 'profile':
        return this.faults.obscure('profiles');
      case 'model':
        return this.faults.obscure('engines', ['models']);
      case 'pool':
        return (
          this.faults.obscure('engines', ['models', 'labels']) ||
          this.faults.obscure('needs', ['when', 'engines', 'refuse'])
        );
    }
  }
}

function idsOf(
  items: readonly ({ readonly id?: string | undefined } | undefined)[] | undefined,
): ReadonlySet<string> {
  return new Set(items?.map((item) => item?.id).filter((id) => id !== undefined));
}
