import { SYNC_CLUSTER, XDS_CLUSTER } from '../../wire/names.js';
import {
  isOneHost,
  isWildcard,
  parseAddress,
  parseHostPort,
  parseTarget,
  splitAddress,
} from '../fleet/address.js';
import type { Pool } from '../fleet/fleet.js';
import { parseSelector } from '../fleet/metric-selector.js';
import { checkNeeds } from './check-needs.js';
import type { Faults } from './faults.js';
import type { NetworkTable } from './network-table.js';
import type { ConfigProblem, Path } from './problem.js';
import type { ConfigFile } from './schema.js';
import type { Partly } from './schema-type.js';
import { closest, suggest } from './suggest.js';
import type { YamlSource } from './yaml-source.js';

export interface CrossChecked {
  readonly problems: readonly ConfigProblem[];
  /** Things that are legal but probably not meant. */
  readonly warnings: readonly ConfigProblem[];
}

/** What names refer to. */
type Kind = 'frontend' | 'engine' | 'profile' | 'model' | 'pool';
type Draft = Partly<ConfigFile>;
type Tokens = Partly<{ promptTokens: number; uncachedPromptTokens: number }>;

/** Finds what a schema cannot: contradictions between parts, in whatever is left of an invalid document. */
export function crossCheck(
  config: Draft,
  source: YamlSource,
  faults: Faults,
  table: NetworkTable | undefined,
): CrossChecked {
  const checker = new Checker(config, source, faults);
  checker.checkServer();
  checker.checkIds('frontends');
  checker.checkIds('engines');
  checker.checkFrontends();
  checker.checkEngines();
  checker.checkNetwork(table);
  checker.checkProfiles();
  checker.checkNeeds();
  checker.checkDemand();
  checker.checkPolicy();
  return checker;
}

class Checker implements CrossChecked {
  readonly problems: ConfigProblem[] = [];
  readonly warnings: ConfigProblem[] = [];
  readonly #config: Draft;
  readonly #source: YamlSource;
  readonly #faults: Faults;
  readonly #frontendIds: ReadonlySet<string>;
  readonly #engineIds: ReadonlySet<string>;
  readonly #models: ReadonlySet<string>;
  /** Lists with an id that two have, of which one may have been meant to have another. */
  readonly #repeated = new Set<string>();
  /** Undefined when they cannot be told. */
  #pools: readonly Pool[] | undefined;

  constructor(config: Draft, source: YamlSource, faults: Faults) {
    this.#config = config;
    this.#source = source;
    this.#faults = faults;
    this.#frontendIds = idsOf(config.frontends);
    this.#engineIds = idsOf(config.engines);
    this.#models = new Set(
      config.engines?.flatMap((engine) => engine?.models ?? []).filter((model) => model !== undefined),
    );
  }

  checkServer(): void {
    const { server } = this.#config;
    if (server?.token !== undefined && server.tokenFile !== undefined) {
      this.#problem(['server', 'tokenFile'], 'give either token or tokenFile', { at: 'key' });
    }
    const seen = new Map<string, Path>();
    const isGuarded = server?.token ?? server?.tokenFile ?? server?.tls?.clientCa;
    for (const name of ['xds', 'sync', 'admin'] as const) {
      const path = ['server', name, 'listen'];
      const address = this.#address(path, server?.[name]?.listen);
      if (address === undefined) continue;
      this.#once(seen, address, path, `the listening address ${address}`);
      if (splitAddress(address).host.startsWith('127.') || splitAddress(address).host === '::1') continue;
      if (name === 'admin') {
        this.#warn(path, 'the admin API has no authentication and is not limited to this machine');
      } else if (isGuarded === undefined) {
        this.#warn(path, `anyone who reaches ${address} can use it`, 'set token, tokenFile or tls.clientCa');
      }
    }
    this.#checkPeers();
  }

  #checkPeers(): void {
    const seen = new Map<string, Path>();
    for (const [index, peer] of (this.#config.server?.peers ?? []).entries()) {
      const hosts = (['xds', 'sync'] as const).flatMap((name) => {
        const text = peer?.[name];
        if (text === undefined) return [];
        const path = ['server', 'peers', index, name];
        const target = parseTarget(text);
        if (target === undefined) this.#problem(path, `${JSON.stringify(text)} is no name:port or ip:port`);
        else this.#once(seen, text, path, `the address ${text}`);
        return target?.host ?? [];
      });
      if (new Set(hosts).size > 1) {
        this.#problem(['server', 'peers', index], `xds and sync of one peer must be on the same host`);
      }
    }
  }

  checkIds(list: 'frontends' | 'engines'): void {
    const seen = new Map<string, Path>();
    for (const [index, item] of (this.#config[list] ?? []).entries()) {
      if (item?.id === undefined) continue;
      const path = [list, index, 'id'];
      if (!this.#once(seen, item.id, path, `id ${JSON.stringify(item.id)}`)) this.#repeated.add(list);
    }
  }

  checkFrontends(): void {
    const seen = new Map<string, Path>();
    for (const [index, frontend] of (this.#config.frontends ?? []).entries()) {
      const path = ['frontends', index, 'listen'];
      const address = this.#address(path, frontend?.listen);
      // Frontends on different machines may all listen on every interface.
      if (address !== undefined && !isWildcard(address)) {
        this.#once(seen, address, path, `the listening address ${address}`);
      }
    }
  }

  checkEngines(): void {
    const endpoints = new Map<string, Path>();
    const profileIds = Object.keys(this.#config.profiles ?? {});
    for (const [index, engine] of (this.#config.engines ?? []).entries()) {
      for (const [at, endpoint] of (engine?.endpoints ?? []).entries()) {
        const path = ['engines', index, 'endpoints', at];
        const address = this.#address(path, endpoint);
        if (address === undefined) continue;
        this.#once(endpoints, address, path, `endpoint ${address}`);
        if (!isOneHost(address)) this.#problem(path, `${address} is the address of no single machine`);
      }
      const models = new Map<string, Path>();
      for (const [at, model] of (engine?.models ?? []).entries()) {
        if (model === undefined) continue;
        const path = ['engines', index, 'models', at];
        this.#once(models, model, path, `model ${JSON.stringify(model)}`);
        if (model === SYNC_CLUSTER || model === XDS_CLUSTER) {
          this.#problem(path, `${JSON.stringify(model)} is the name of a cluster that Envoys need`);
        }
      }
      this.#checkReplicas(index, engine);
      this.#checkMetrics(index, engine?.metrics);
      const path = ['engines', index, 'profile'];
      if (engine?.profile !== undefined) this.#known(path, 'profile', engine.profile, profileIds);
      else if (engine !== undefined) {
        this.#warn(
          ['engines', index],
          `engine ${JSON.stringify(engine.id ?? index)} has no profile`,
          profileIds.length > 0
            ? 'the profile with the most work per request is used'
            : 'one request per second and replica is assumed',
        );
      }
    }
    this.#checkUpstreams();
  }

  /** Engines of a model share a cluster in Envoy, which speaks to all of them alike. */
  #checkUpstreams(): void {
    const first = new Map<string, { readonly id: string; readonly upstream: string }>();
    for (const [index, engine] of (this.#config.engines ?? []).entries()) {
      const upstream = JSON.stringify([engine?.tls, engine?.auth]);
      for (const model of engine?.models ?? []) {
        if (model === undefined) continue;
        const other = first.get(model);
        if (other === undefined) first.set(model, { id: engine?.id ?? String(index), upstream });
        else if (other.upstream !== upstream) {
          const message = `tls and auth differ from those of engine ${JSON.stringify(other.id)}, which serves ${JSON.stringify(model)}, too`;
          this.#problem(['engines', index], message, { hint: 'give both the same' });
          break;
        }
      }
    }
  }

  #checkReplicas(index: number, engine: Partly<ConfigFile['engines'][number]> | undefined): void {
    if (engine === undefined) return;
    const { endpoints, discovery } = engine;
    const path = ['engines', index];
    const sources = Object.values(discovery ?? {}).filter((value) => value !== undefined).length;
    if (endpoints === undefined && discovery === undefined) {
      if (this.#faults.excuse(path, ['endpoints', 'discovery'])) return;
      this.#problem(path, 'missing key "endpoints"', { hint: 'or say where they are found: discovery' });
    } else if (endpoints !== undefined && discovery !== undefined) {
      this.#problem([...path, 'discovery'], 'give either endpoints or discovery', { at: 'key' });
    } else if (
      discovery !== undefined &&
      sources !== 1 &&
      !this.#faults.excuse([...path, 'discovery'], ['dns', 'srv', 'file'])
    ) {
      this.#problem([...path, 'discovery'], 'give exactly one of dns, srv and file', { at: 'key' });
    }
    if (discovery?.dns !== undefined && parseHostPort(discovery.dns) === undefined) {
      const problem = `${JSON.stringify(discovery.dns)} is not a name:port`;
      this.#problem([...path, 'discovery', 'dns'], problem, { hint: 'such as engines.example:8000' });
    }
  }

  #checkMetrics(index: number, metrics: Partly<ConfigFile['engines'][number]['metrics']> | undefined): void {
    const path = ['engines', index, 'metrics'];
    const names = Object.entries(metrics?.names ?? {});
    for (const [signal, text] of names) {
      if (text === undefined || parseSelector(text) !== undefined) continue;
      const problem = `${JSON.stringify(text)} is neither a metric's name nor one with labels`;
      this.#problem([...path, 'names', signal], problem, { hint: 'such as my_queue{kind="waiting"}' });
    }
    if (metrics?.kind === 'custom' && names.length === 0 && !this.#faults.excuse(path, ['names'])) {
      this.#problem(path, 'kind is custom, but names is empty', { hint: 'name at least running' });
    } else if (metrics?.kind === 'none' && names.length > 0) {
      this.#problem([...path, 'names'], 'nothing is read, because kind is none', {
        hint: 'set kind: custom',
      });
    }
  }

  checkNetwork(table: NetworkTable | undefined): void {
    const { network } = this.#config;
    this.#checkPairs(['network', 'egressDollarsPerRequest'], network?.egressDollarsPerRequest ?? {});
    if (network?.rttMs !== undefined && network.table !== undefined) {
      this.#problem(['network'], 'give either rttMs or table', { at: 'key' });
    } else if (network?.rttMs !== undefined) this.#checkMatrix(network.rttMs);
    else if (table !== undefined) this.#checkRegions(table);
    else if (network?.table === undefined && !this.#isNetworkFaulty()) {
      const regions = new Set(
        [...(this.#config.frontends ?? []), ...(this.#config.engines ?? [])]
          .map((item) => item?.region)
          .filter((region) => region !== undefined),
      );
      if (regions.size > 1) {
        this.#problem(['network'], `network is missing, but there are ${regions.size} regions`, {
          hint: 'give network.rttMs or network.table',
        });
      }
    }
  }

  #isNetworkFaulty(): boolean {
    return this.#faults.excuse([], ['network']) || this.#faults.excuse(['network'], ['rttMs', 'table']);
  }

  /** Keys of a mapping by frontend, then engine. */
  #checkPairs(path: Path, rows: Partly<Record<string, Record<string, number | null>>>): void {
    for (const [frontendId, row] of Object.entries(rows)) {
      this.#known([...path, frontendId], 'frontend', frontendId, this.#frontendIds, 'key');
      for (const engineId of Object.keys(row ?? {})) {
        this.#known([...path, frontendId, engineId], 'engine', engineId, this.#engineIds, 'key');
      }
    }
  }

  #checkMatrix(rttMs: NonNullable<NonNullable<Draft['network']>['rttMs']>): void {
    const path = ['network', 'rttMs'];
    this.#checkPairs(path, rttMs);
    const meantRows = misspelt(Object.keys(rttMs), this.#frontendIds);
    for (const frontendId of this.#frontendIds) {
      if (meantRows.has(frontendId)) continue;
      const row = rttMs[frontendId];
      const meant = misspelt(Object.keys(row ?? {}), this.#engineIds);
      const missing = [...this.#engineIds].filter(
        (engineId) =>
          row?.[engineId] === undefined &&
          !meant.has(engineId) &&
          !this.#source.has([...path, frontendId, engineId]),
      );
      if (missing.length > 0) {
        this.#problem([...path, frontendId], `no round trip from ${frontendId} to ${missing.join(', ')}`, {
          hint: 'write null where the engine cannot be reached',
        });
      } else if (Object.values(row ?? {}).every((value) => value === null)) {
        this.#warn(
          [...path, frontendId],
          `frontend ${frontendId} reaches no engine; its requests are refused`,
        );
      }
    }
  }

  #checkRegions(table: NetworkTable): void {
    for (const [list, known, kind] of [
      ['frontends', table.sources, 'row'],
      ['engines', table.destinations, 'column'],
    ] as const) {
      for (const [index, item] of (this.#config[list] ?? []).entries()) {
        if (item?.region === undefined || known.includes(item.region)) continue;
        this.#problem(
          [list, index, 'region'],
          `region ${JSON.stringify(item.region)} is no ${kind} of the latency table`,
          { hint: suggest(item.region, known) },
        );
      }
    }
  }

  checkProfiles(): void {
    for (const [id, profile] of Object.entries(this.#config.profiles ?? {})) {
      if (profile === undefined) continue;
      const path = ['profiles', id];
      const { work, requestsPerSecond } = profile;
      if (work !== undefined && requestsPerSecond !== undefined) {
        this.#problem([...path, 'requestsPerSecond'], 'give either work or requestsPerSecond', { at: 'key' });
      } else if (work !== undefined && Object.values(work).every((value) => value === 0)) {
        this.#problem([...path, 'work'], 'a request must cost some work');
      } else if (work === undefined && requestsPerSecond === undefined) {
        if (this.#faults.excuse(path, ['work', 'requestsPerSecond'])) continue;
        this.#problem(path, 'says nothing about work', { at: 'key', hint: 'give work or requestsPerSecond' });
      } else if (work !== undefined) {
        for (const key of ['ttft', 'tbot'] as const) {
          if (profile[key] === undefined && !this.#faults.excuse(path, [key]))
            this.#problem(path, `missing key ${JSON.stringify(key)}`, { at: 'key' });
        }
      }
    }
  }

  checkNeeds(): void {
    this.#pools = checkNeeds(this.#config, this.#faults, (path, message, options) =>
      this.#problem(path, message, options),
    );
  }

  checkDemand(): void {
    for (const [frontendId, demand] of Object.entries(this.#config.demand ?? {})) {
      const path = ['demand', frontendId];
      this.#known(path, 'frontend', frontendId, this.#frontendIds, 'key');
      this.#checkTokens(path, demand);
      if (demand?.requestsPerSecond !== undefined && this.#models.size > 1) {
        this.#problem([...path, 'requestsPerSecond'], 'does not say for which model', {
          at: 'key',
          hint: `give it under models, such as models: {${[...this.#models][0]}: {requestsPerSecond: …}}`,
        });
      }
      for (const [model, rate] of Object.entries(demand?.models ?? {})) {
        this.#known([...path, 'models', model], 'model', model, this.#models, 'key');
        this.#checkTokens([...path, 'models', model], { ...demand, ...rate });
      }
      for (const [pool, rate] of Object.entries(demand?.pools ?? {})) {
        const poolPath = [...path, 'pools', pool];
        if (this.#knownPool(poolPath, pool, 'key') && this.#models.has(pool)) {
          this.#problem(poolPath, 'is the pool of requests without needs', {
            at: 'key',
            hint: 'give it under models',
          });
        }
        const model = this.#pools?.find(({ id }) => id === pool)?.model ?? '';
        this.#checkTokens(poolPath, { ...demand, ...demand?.models?.[model], ...rate });
      }
    }
  }

  #checkTokens(path: Path, rate: Tokens | undefined): void {
    const { promptTokens, uncachedPromptTokens } = rate ?? {};
    if (
      promptTokens !== undefined &&
      uncachedPromptTokens !== undefined &&
      uncachedPromptTokens > promptTokens
    ) {
      this.#problem([...path, 'uncachedPromptTokens'], `must be at most promptTokens, ${promptTokens}`);
    }
  }

  checkPolicy(): void {
    const { policy } = this.#config;
    const { targetUtilization, maxUtilization, retries } = policy ?? {};
    if (
      targetUtilization !== undefined &&
      maxUtilization !== undefined &&
      targetUtilization > maxUtilization
    ) {
      this.#problem(['policy', 'targetUtilization'], `must be at most maxUtilization, ${maxUtilization}`);
    }
    if (retries?.min !== undefined && retries.max !== undefined && retries.min > retries.max) {
      this.#problem(['policy', 'retries', 'min'], `must be at most max, ${retries.max}`);
    }
    this.#checkBounds(policy?.bounds ?? []);
    const classes = new Map<string, Path>();
    for (const [index, entry] of (policy?.minShares ?? []).entries()) {
      const path = ['policy', 'minShares', index];
      if (entry?.pool === undefined) continue;
      this.#knownPool([...path, 'pool'], entry.pool);
      const name = `the class of pool ${entry.pool} with priority ${entry.priority}`;
      this.#once(classes, name, path, name);
    }
  }

  #checkBounds(bounds: NonNullable<NonNullable<Draft['policy']>['bounds']>): void {
    const seen = new Map<string, Path>();
    const least = new Map<string, number>();
    const largest = new Map<string, number>();
    for (const [index, bound] of bounds.entries()) {
      const path = ['policy', 'bounds', index];
      const { frontend, pool, engine, pin } = bound ?? {};
      const min = pin ?? bound?.min ?? 0;
      const max = pin ?? bound?.max ?? 1;
      if (frontend === undefined || pool === undefined || engine === undefined) continue;
      const known =
        this.#known([...path, 'frontend'], 'frontend', frontend, this.#frontendIds) &&
        this.#knownPool([...path, 'pool'], pool) &&
        this.#known([...path, 'engine'], 'engine', engine, this.#engineIds);
      if (!known) continue;
      this.#once(
        seen,
        `${frontend} ${pool} ${engine}`,
        path,
        `the weight of ${engine} in ${pool} for ${frontend}`,
      );
      const serving = this.#pools?.find(({ id }) => id === pool)?.engineIds;
      if (serving === undefined) continue;
      if (!serving.includes(engine)) {
        this.#problem([...path, 'engine'], `engine ${engine} does not serve ${pool}`);
        continue;
      }
      if (pin !== undefined && ['min', 'max'].some((key) => this.#source.has([...path, key]))) {
        this.#problem([...path, 'pin'], 'give either pin or min and max', { at: 'key' });
      }
      if (min > max) this.#problem([...path, 'min'], `must be at most max, ${max}`);
      const row = `${frontend} ${pool}`;
      const total = (least.get(row) ?? 0) + min;
      least.set(row, total);
      if (total > 1 + 1e-9 && total - min <= 1 + 1e-9) {
        this.#problem(
          [...path, pin === undefined ? 'min' : 'pin'],
          `the least weights of ${pool} for ${frontend} add up to more than 1`,
        );
      }
      // Each bound lowers what the engines may get together: all of them 1 to begin with.
      const room = (largest.get(row) ?? serving.length) - (1 - max);
      largest.set(row, room);
      if (room < 1 - 1e-9 && room + (1 - max) >= 1 - 1e-9) {
        this.#problem(
          [...path, pin === undefined ? 'max' : 'pin'],
          `the largest weights of ${pool} for ${frontend} add up to less than 1`,
        );
      }
    }
  }

  #address(path: Path, text: string | undefined): string | undefined {
    if (text === undefined) return undefined;
    const parsed = parseAddress(text);
    if ('address' in parsed) return parsed.address;
    this.#problem(path, parsed.error, { hint: parsed.hint });
    return undefined;
  }

  /** Whether there may be names of a kind that cannot be read. */
  #mayHaveMore(kind: Kind): boolean {
    switch (kind) {
      case 'frontend':
        return this.#repeated.has('frontends') || this.#faults.obscure('frontends', ['id']);
      case 'engine':
        return this.#repeated.has('engines') || this.#faults.obscure('engines', ['id']);
      case 'profile':
        return this.#faults.obscure('profiles');
      case 'model':
        return this.#faults.obscure('engines', ['models']);
      case 'pool':
        return (
          this.#faults.obscure('engines', ['models', 'labels']) ||
          this.#faults.obscure('needs', ['when', 'engines', 'refuse'])
        );
    }
  }

  #knownPool(path: Path, pool: string, at: 'key' | 'value' = 'value'): boolean {
    const ids = this.#pools?.map(({ id }) => id);
    return ids === undefined || this.#known(path, 'pool', pool, ids, at);
  }

  /** Whether there is one of that name, as far as can be told. */
  #known(
    path: Path,
    kind: Kind,
    name: string,
    known: Iterable<string>,
    at: 'key' | 'value' = 'value',
  ): boolean {
    const names = [...known];
    if (names.includes(name) || this.#mayHaveMore(kind)) return true;
    const hint =
      suggest(name, names) ??
      (names.length > 0 && names.length <= 10 ? `known: ${names.join(', ')}` : undefined);
    this.#problem(path, `unknown ${kind} ${JSON.stringify(name)}`, { at, hint });
    return false;
  }

  /** Whether it is the first with that name. */
  #once(seen: Map<string, Path>, name: string, path: Path, what: string): boolean {
    const first = seen.get(name);
    if (first === undefined) {
      seen.set(name, path);
      return true;
    }
    const { line, path: firstPath } = this.#source.problem(first, '');
    this.#problem(path, `${what} is already used at ${firstPath}, line ${line}`);
    return false;
  }

  #problem(
    path: Path,
    message: string,
    options: { at?: 'key' | 'value'; hint?: string | undefined } = {},
  ): void {
    this.problems.push(this.#source.problem(path, message, options));
  }

  #warn(path: Path, message: string, hint?: string): void {
    this.warnings.push(this.#source.problem(path, message, { hint }));
  }
}

/** The known names for which others seem to be meant, and which are not there themselves. */
function misspelt(names: readonly string[], known: ReadonlySet<string>): ReadonlySet<string> {
  const missing = [...known].filter((name) => !names.includes(name));
  return new Set(
    names
      .filter((name) => !known.has(name))
      .map((name) => closest(name, known))
      .filter((name) => name !== undefined && missing.includes(name)) as string[],
  );
}

function idsOf(
  items: readonly ({ readonly id?: string | undefined } | undefined)[] | undefined,
): ReadonlySet<string> {
  return new Set(items?.map((item) => item?.id).filter((id) => id !== undefined));
}
