import { Random } from '../../../simulator/random.js';
import { id64 } from '../../../wire/hash.js';
import {
  type EngineUsage,
  LOAD_NAMES,
  type LoadUsage,
  type NetworkUsage,
  noEngineUsage,
  noPoolUsage,
  noVmUsage,
  type PoolUsage,
  type ReplicaUsage,
  type TurnUsage,
  type UsageReport,
  type VmUsage,
} from '../../../wire/usage-report.js';
import { loadConfig } from '../../config/load.js';
import type { Signals } from '../signals.js';

const SECONDS_EACH = 24;
const PROFILE =
  '{work: {secondsPerRequest: 0.1}, ttft: {baseSeconds: 0.05, queueSeconds: 0.01}, tbot: {baseSeconds: 0.01, kappa: 0.5}, maxFittedRho: 0.95}';

/** Two frontends and three engines; `rps` is what f is expected to ask for. */
export function lifeConfig(rps: number, replicasOfA = 2) {
  const ofA = Array.from({ length: replicasOfA }, (_, at) => `"10.0.0.${at + 1}:80"`);
  return loadConfig('/none/fleet.yaml', () =>
    [
      'frontends: [{id: f, region: r}, {id: g, region: r}]',
      'engines:',
      `- {id: a, region: r, models: [m], profile: p, endpoints: [${ofA.join(', ')}]}`,
      '- {id: b, region: r, models: [m, n], profile: p, endpoints: ["10.0.1.1:80"]}',
      '- {id: c, region: r, models: [n], profile: p, endpoints: ["10.0.2.1:80"]}',
      'network: {rttMs: {f: {a: 1, b: 70, c: 20}, g: {a: 3, b: null, c: 30}}}',
      `profiles: {p: ${PROFILE}}`,
      'classes: {batch: {priority: -1, when: {path: /batch}}}',
      `demand: {f: {models: {m: {requestsPerSecond: ${rps}, promptTokens: 100, outputTokens: 20}}}}`,
    ].join('\n'),
  );
}

export type LifeConfig = ReturnType<typeof lifeConfig>;

/** What happens for a while. */
const TROUBLES = [
  'none',
  'surge',
  'slow',
  'full',
  'failing',
  'down',
  'silent',
  'outside',
  'standing',
  'drained',
  'reconfigured',
  'held-up',
  'fast',
  'all-slow',
] as const;
type Trouble = (typeof TROUBLES)[number] | 'weary' | 'breaking';
/** A full engine is slow for a while when it has room again, and one that failed breaks off its answers. */
const AFTERMATHS: Partial<Record<Trouble, Trouble>> = { full: 'weary', failing: 'breaking' };

/** Tells signals something, or looks at them. */
export interface Event {
  readonly atMs: number;
  /** A change of the configuration that goes with it. */
  readonly config?: LifeConfig;
  readonly tell: (signals: Signals) => unknown;
}

/** All that signals are told in some twenty minutes in which everything goes wrong that may, in an order that the seed decides. */
export function* life(seed: number): Generator<Event> {
  const random = new Random(seed);
  const nodes = [new Node('f', 'n0', random), new Node('f', 'n1', random), new Node('g', 'n2', random)];
  const envoy = new Node('g', 'lrs', random);
  const rounds = [TROUBLES, TROUBLES].map((troubles): readonly Trouble[] => [
    'none',
    ...random.shuffled(troubles),
  ]);
  const troubles = rounds
    .flat()
    .flatMap((trouble): Trouble[] => [
      trouble,
      ...(AFTERMATHS[trouble] === undefined ? [] : [AFTERMATHS[trouble]]),
    ]);
  let config = lifeConfig(20);
  let tokens = 0;
  for (let second = 0; second < troubles.length * SECONDS_EACH; second++) {
    const trouble = troubles[Math.floor(second / SECONDS_EACH)]!;
    const isFirst = second % SECONDS_EACH === 0;
    const atMs = second * 1_000 + random.integer({ min: 0, max: 300 });
    if (trouble !== 'standing') tokens += 500;
    if (isFirst && trouble === 'reconfigured') {
      const next = lifeConfig(random.integer({ min: 5, max: 40 }), random.integer({ min: 1, max: 3 }));
      config = next;
      yield { atMs, config, tell: (signals) => signals.reconfigure(next, atMs) };
    }
    if (isFirst && trouble === 'held-up') yield { atMs, tell: (signals) => signals.noteHoldUp(atMs) };
    if (isFirst && trouble === 'drained') {
      for (const target of ['c', '10.0.0.1:80']) {
        yield {
          atMs,
          tell: (signals) => signals.act({ action: 'drain', target, forSeconds: 40, by: 'me' }, atMs),
        };
      }
      yield {
        atMs,
        tell: (signals) =>
          signals.act({ action: 'release-penalty', target: 'a', forSeconds: 40, by: 'me' }, atMs),
      };
    }
    for (const { id, endpoints } of config.fleet.engines) {
      for (const address of endpoints) {
        const isDown = trouble === 'down' && id !== 'c' && random.unit() < 0.8;
        const failure = {
          ok: false,
          kind: random.unit() < 0.5 ? 'timeout' : 'refused',
          detail: 'none',
        } as const;
        yield {
          atMs,
          tell: (signals) => signals.acceptProbe(id, address, isDown ? failure : { ok: true }, atMs),
        };
        const page = random.unit() < 0.02 ? undefined : tokens;
        if (second % 2 === 0) yield { atMs, tell: (signals) => signals.acceptPage(id, address, page, atMs) };
      }
    }
    for (const [index, node] of nodes.entries()) {
      if (trouble === 'silent' && node.frontendId === 'f' && (index === 0 || second % SECONDS_EACH > 5))
        continue;
      if (random.unit() < 0.03) continue;
      const sentMs = atMs + 100 * index;
      const report = node.report(config, trouble, second);
      yield {
        atMs: sentMs,
        tell: (signals) => signals.acceptReport(node.frontendId, node.nodeId, report, sentMs),
      };
    }
    const loads = envoy.report(config, trouble, second);
    yield { atMs: atMs + 400, tell: (signals) => signals.acceptLoadReport('g', 'lrs', loads, atMs + 400) };
    if (second % 2 === 1) {
      for (const engine of config.fleet.engines) {
        const replicas = engine.endpoints.length;
        const ours = [...nodes, envoy].reduce((sum, node) => sum + node.held(engine.id), 0);
        const requests = ours + (trouble === 'outside' && engine.id === 'a' ? 15 : 0);
        const waiting = trouble === 'full' ? 3 : 0;
        const loadMs = atMs + 500;
        yield {
          atMs: loadMs,
          tell: (signals) => signals.acceptLoad(engine, requests, replicas, loadMs, waiting),
        };
      }
    }
    if (second > (troubles.length - 1) * SECONDS_EACH) {
      const turns = manyTurns(second);
      yield { atMs, tell: (signals) => signals.acceptReport('f', 'many', turns, atMs) };
    }
    const look = (signals: Signals) => {
      signals.notePartial(trouble === 'held-up', atMs + 600);
      return signals.evaluate(atMs + 600);
    };
    yield { atMs: atMs + 600, tell: look };
  }
}

/** More conversations than are followed at a time. */
function manyTurns(second: number): UsageReport {
  const pool = id64('m');
  const turns = Array.from({ length: 200 }, (_, at) => ({
    pool,
    key: BigInt(second * 200 + at) * 8n,
    turns: 1,
  }));
  return { vms: [{ ...noVmUsage(7n, second), turns, turnLevel: 2 }] };
}

type Counts<T> = { -readonly [Name in keyof T]: T[Name] };

/** An Envoy with two VMs, of which the second restarts now and then. */
export class Node {
  readonly frontendId: string;
  readonly nodeId: string;
  readonly #random: Random;
  readonly #vms: Vm[] = [];

  constructor(frontendId: string, nodeId: string, random: Random) {
    this.frontendId = frontendId;
    this.nodeId = nodeId;
    this.#random = random;
  }

  report(config: LifeConfig, trouble: Trouble, second: number): UsageReport {
    if (this.#vms.length === 0 || second % 300 === 299) {
      this.#vms.length = Math.min(1, this.#vms.length);
      while (this.#vms.length < 2) this.#vms.push(new Vm(BigInt(this.#random.bits())));
    }
    for (const vm of this.#vms) vm.live(config, trouble, this.#random);
    // Duplicates and lost VMs happen.
    const vms = this.#random.unit() < 0.1 ? this.#vms.slice(0, 1) : this.#vms;
    return { vms: vms.map((vm) => vm.usage()) };
  }

  held(engineId: string): number {
    return this.#vms.reduce((sum, vm) => sum + vm.held(engineId), 0);
  }
}

class Vm {
  readonly #incarnation: bigint;
  #sequence = 0;
  readonly #pools = new Map<string, Counts<PoolUsage>>();
  readonly #engines = new Map<string, Counts<EngineUsage>>();
  readonly #replicas = new Map<string, Counts<ReplicaUsage>>();
  readonly #networks = new Map<string, Counts<NetworkUsage>>();
  readonly #turns = new Map<bigint, Counts<TurnUsage>>();

  constructor(incarnation: bigint) {
    this.#incarnation = incarnation;
  }

  live({ fleet }: LifeConfig, trouble: Trouble, random: Random): void {
    this.#sequence++;
    for (const { id: poolId, engineIds } of fleet.pools) {
      for (const priority of [0, -1]) {
        const usual = priority === 0 ? 4 : 1;
        const requests = Math.round(
          usual * (trouble === 'surge' ? 2.2 : 1) * random.between({ min: 0.8, max: 1.2 }),
        );
        const pool = ofKey(this.#pools, `${poolId} ${priority}`, () => noPoolUsage(id64(poolId), priority));
        pool.offered += requests;
        pool.clientRetries += random.unit() < 0.1 ? 1 : 0;
        pool.bodiesRead += requests;
        pool.followUps += Math.floor(requests / 2);
        pool.promptCount += requests;
        pool.promptTokens += requests * 300;
        pool.cachedTokens += requests * 100;
        pool.cachedOfTokens += requests * 300;
        pool.outputCount += requests;
        pool.outputTokens += requests * 40;
        const engineId = engineIds[random.integer({ min: 0, max: engineIds.length - 1 })]!;
        this.#serve(poolId, engineId, requests, trouble, random);
      }
      const key = BigInt(random.integer({ min: 0, max: 8 })) * 4n;
      ofKey(this.#turns, key, () => ({ pool: id64(poolId), key, turns: 0 })).turns++;
    }
    for (const { id, endpoints } of fleet.engines) {
      const engine = id64(id);
      const network = ofKey(this.#networks, id, () => ({
        engine,
        roundTripCount: 0,
        roundTripSecondsSum: 0,
      }));
      network.roundTripCount++;
      network.roundTripSecondsSum += random.between({ min: 0.02, max: 0.03 });
      const engines = [...this.#engines.values()].filter((usage) => usage.engine === engine);
      const replica = ofKey(this.#replicas, id, () => ({
        engine,
        replica: id64(endpoints[0]!),
        sent: 0,
        ended: 0,
      }));
      replica.sent = engines.reduce((sum, { planned }) => sum + planned, 0);
      replica.ended = engines.reduce((sum, { ended }) => sum + ended, 0);
    }
  }

  /** The slow engine is a, the fast one c, and the one that fails b. */
  #serve(poolId: string, engineId: string, requests: number, trouble: Trouble, random: Random): void {
    const usage = ofKey(this.#engines, `${poolId} ${engineId}`, () =>
      noEngineUsage(id64(poolId), id64(engineId)),
    );
    usage.planned += requests;
    const isSlow = engineId === 'a' && (trouble === 'slow' || trouble === 'full' || trouble === 'weary');
    const backlog = usage.planned - usage.ended;
    const isFull = trouble === 'full' && engineId === 'a';
    const left = trouble === 'weary' && engineId === 'a' ? 5 : 1;
    const ended = isFull
      ? Math.min(backlog, random.integer({ min: 0, max: 1 }))
      : Math.max(0, backlog - left);
    usage.ended += ended;
    if (trouble === 'breaking' && engineId === 'b') {
      usage.status2xx += ended;
      usage.broken += ended;
      usage.failures += ended;
      return;
    }
    if (trouble === 'failing' && engineId === 'b') {
      usage.failures += ended;
      return;
    }
    const slowness = isSlow ? 10 : trouble === 'all-slow' ? 3 : trouble === 'fast' ? 0.3 : 1;
    const seconds = 0.08 * slowness * random.between({ min: 0.9, max: 1.1 });
    const answered = trouble === 'standing' ? Math.floor(0.9 * ended) : ended;
    const streamed = Math.floor(answered / 2);
    usage.status2xx += answered;
    usage.noResponse += ended - answered;
    usage.firstTokenCount += streamed;
    usage.firstTokenSecondsSum += streamed * seconds;
    usage.paceTokens += streamed * 20;
    usage.paceSecondsSum += (streamed * 20 * seconds) / 5;
    usage.wholeCount += answered - streamed;
    usage.wholeSecondsSum += (answered - streamed) * 5 * seconds;
    usage.usageCount += answered;
    usage.promptTokens += answered * 300;
    usage.cachedTokens += answered * 100;
    usage.cachedOfTokens += answered * 300;
    usage.outputTokens += answered * 40;
  }

  usage(): VmUsage {
    return {
      ...noVmUsage(this.#incarnation, this.#sequence),
      pools: copies(this.#pools),
      engines: copies(this.#engines),
      replicas: copies(this.#replicas),
      networks: copies(this.#networks),
      turns: copies(this.#turns),
      loads: this.#loads(),
      turnLevel: this.#sequence > 60 ? 2 : 1,
    };
  }

  /** Of a replica that starts over now and then, and of one that is told of for the first minutes only. */
  #loads(): LoadUsage[] {
    return ['10.0.0.1:80', '10.0.0.9:80'].slice(0, this.#sequence < 300 ? 2 : 1).map((address) => {
      const reports = this.#sequence % 100;
      const rows = LOAD_NAMES.map(() => reports);
      return { engine: id64('a'), replica: id64(address), reports, garbled: 0, sums: rows, counts: rows };
    });
  }

  held(engineId: string): number {
    const engine = id64(engineId);
    const own = [...this.#engines.values()].filter((usage) => usage.engine === engine);
    return own.reduce((sum, { planned, ended }) => sum + planned - ended, 0);
  }
}

function ofKey<K, T>(map: Map<K, Counts<T>>, key: K, create: () => T): Counts<T> {
  const known = map.get(key) ?? (create() as Counts<T>);
  map.set(key, known);
  return known;
}

function copies<T extends object>(map: ReadonlyMap<unknown, T>): T[] {
  return [...map.values()].map((row) => ({ ...row }));
}
