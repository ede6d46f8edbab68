import type { EngineUsage } from '../../../wire/usage-report.js';
import type { Address, Engine, Fleet } from '../../fleet/fleet.js';
import { refill, restoreEntries, saveEntries } from '../saved.js';
import { EngineEvidence, type Veto } from './engine-evidence.js';
import { type HeldReadiness, holdLast, type Loss, type Readiness, type ReplicaPast } from './last-stand.js';
import {
  afterProbe,
  isAnswer,
  type ProbeResult,
  type ReplicaHealth,
  unknownHealth,
} from './replica-health.js';
import { type Stuck, StuckReplicas } from './stuck-replicas.js';

/** Who is ready now. */
interface FleetReadiness extends HeldReadiness {
  readonly vetoes: ReadonlyMap<string, Veto>;
  readonly stuck: ReadonlyMap<Address, Stuck>;
  /** Engines of which replicas came or went since the last look. */
  readonly changed: ReadonlySet<string>;
}

/** Finds out which replicas are ready, by probes and by what frontends see. */
export class ReadinessWatch {
  readonly #health = new Map<Address, ReplicaHealth>();
  /** By engine id. */
  readonly #evidence = new Map<string, EngineEvidence>();
  readonly #stuck = new StuckReplicas();
  readonly #lastReadyMs = new Map<Address, number>();
  #readiness: Readiness | undefined;

  /** Takes another fleet; what is known of those that stay is kept. */
  reconfigure(before: Fleet, fleet: Fleet): void {
    const endpoints = new Set(fleet.engines.flatMap((engine) => engine.endpoints));
    for (const known of [this.#health, this.#lastReadyMs]) {
      for (const address of known.keys()) if (!endpoints.has(address)) known.delete(address);
    }
    this.#doubtNewPages(before, fleet);
    const engineIds = new Set(fleet.engines.map(({ id }) => id));
    for (const id of this.#evidence.keys()) if (!engineIds.has(id)) this.#evidence.delete(id);
    const endpointsBefore = new Map(
      before.engines.map(({ id, endpoints: addresses }) => [id, new Set(addresses)]),
    );
    const stayed = fleet.engines.flatMap(({ id, endpoints: addresses }) =>
      addresses.filter((address) => endpointsBefore.get(id)?.has(address)),
    );
    this.#stuck.keep(engineIds, new Set(stayed));
    const readinessByEngine = new Map(before.engines.map(({ id }, at) => [id, this.#readiness?.[at]]));
    this.#readiness = fleet.engines.map(({ id, endpoints: addresses }) => {
      const ready = readinessByEngine.get(id);
      const old = before.engines.find((engine) => engine.id === id)?.endpoints ?? [];
      return addresses.map((address) => ready?.[old.indexOf(address)] ?? true);
    });
  }

  /** Of another page it is not known whether it ever was good; who is down stays so until it is. */
  #doubtNewPages(before: Fleet, fleet: Fleet): void {
    const pathBefore = new Map(before.engines.map(({ id, healthPath }) => [id, healthPath]));
    for (const { id, healthPath, endpoints } of fleet.engines) {
      if (pathBefore.get(id) === healthPath) continue;
      for (const address of endpoints) {
        const health = this.#health.get(address);
        if (health?.state === 'up') this.#health.set(address, { ...health, state: 'unknown' });
      }
    }
  }

  health(address: Address, nowMs: number): ReplicaHealth {
    return this.#health.get(address) ?? unknownHealth(nowMs);
  }

  /** Takes a probe result and tells what is thought of the replica now. */
  acceptProbe(engineId: string, address: Address, result: ProbeResult, nowMs: number): ReplicaHealth {
    const isLate = !result.ok && result.kind === 'timeout';
    const servesWell = this.#evidence.get(engineId)?.servesWell(nowMs, isLate) ?? false;
    const health = afterProbe(this.health(address, nowMs), result, servesWell, nowMs);
    this.#health.set(address, health);
    return health;
  }

  addUsage(engineId: string, usage: EngineUsage, nowMs: number): void {
    const evidence = this.#evidence.get(engineId) ?? new EngineEvidence();
    this.#evidence.set(engineId, evidence);
    evidence.add(usage, nowMs);
    this.#stuck.addEngine(engineId, usage);
  }

  /** Takes streamed answers of an engine that came to their end. */
  addStreams(engineId: string, completed: number): void {
    this.#stuck.addStreams(engineId, completed);
  }

  /** Takes requests of a replica that ended since `fromMs`, however they did. */
  addEnded(address: Address, ended: number, fromMs: number, nowMs: number): void {
    this.#stuck.addReplica(address, ended, fromMs, nowMs);
  }

  /**
   * `isDrained`: replicas that are out of service by an operator's will. `inFlight`: requests under way at replicas; undefined
   * while nobody knows.
   */
  evaluate(
    fleet: Fleet,
    isDrained: (address: Address) => boolean,
    inFlight: ReadonlyMap<Address, number> | undefined,
    nowMs: number,
  ): FleetReadiness {
    const vetoes = this.#vetoes(fleet, nowMs);
    const isUp = (address: Address) => this.health(address, nowMs).state !== 'down';
    const mayServe = (address: Address) => isUp(address) && !isDrained(address);
    const stuck = this.#stuck.evaluate(fleet.engines, mayServe, inFlight, nowMs);
    const isReady = ({ id }: Engine, address: Address) =>
      !vetoes.has(id) && !stuck.has(address) && mayServe(address);
    const observed = fleet.engines.map((engine) =>
      engine.endpoints.map((address) => isReady(engine, address)),
    );
    this.#rememberReady(fleet, observed, nowMs);
    const past = (engine: number, replica: number): ReplicaPast => {
      const { id, endpoints } = fleet.engines[engine]!;
      const address = endpoints[replica]!;
      const health = this.health(address, nowMs);
      return {
        lastReadyMs: this.#lastReadyMs.get(address),
        loss: lossOf(health, vetoes.has(id) || stuck.has(address), isDrained(address)),
        wasInService: this.#readiness?.[engine]?.[replica] ?? false,
        upSinceMs: health.state === 'up' ? health.sinceMs : undefined,
      };
    };
    const held = holdLast(fleet, observed, past, nowMs);
    const changed = this.#readiness === undefined ? [] : changedAt(held.readiness, this.#readiness);
    this.#readiness = held.readiness;
    return { ...held, vetoes, stuck, changed: new Set(changed.map((at) => fleet.engines[at]!.id)) };
  }

  #vetoes({ engines }: Fleet, nowMs: number): ReadonlyMap<string, Veto> {
    const vetoes = new Map<string, Veto>();
    for (const { id, endpoints } of engines) {
      const evidence = this.#evidence.get(id);
      const isDown = endpoints.every((address) => this.health(address, nowMs).state === 'down');
      // Failures of an engine that is known to be down say nothing about the time after it comes back.
      if (isDown) evidence?.forget();
      const veto = evidence?.veto(nowMs);
      if (veto !== undefined) vetoes.set(id, veto);
    }
    return vetoes;
  }

  #rememberReady({ engines }: Fleet, observed: Readiness, nowMs: number): void {
    for (const [at, { endpoints }] of engines.entries()) {
      for (const [replica, address] of endpoints.entries()) {
        if (observed[at]![replica]) this.#lastReadyMs.set(address, nowMs);
      }
    }
  }

  save() {
    return {
      health: [...this.#health],
      evidence: saveEntries(this.#evidence),
      stuck: this.#stuck.save(),
      lastReadyMs: [...this.#lastReadyMs],
      readiness: this.#readiness,
    };
  }

  restore(saved: SavedReadinessWatch): void {
    refill(this.#health, saved.health);
    restoreEntries(this.#evidence, saved.evidence, () => new EngineEvidence());
    this.#stuck.restore(saved.stuck);
    refill(this.#lastReadyMs, saved.lastReadyMs);
    this.#readiness = saved.readiness;
  }
}

function lossOf({ state, failure }: ReplicaHealth, isFailing: boolean, isDrained: boolean): Loss {
  if (failure === 'refused') return 'refused';
  if (isFailing) return 'failing';
  if (isDrained) return state === 'down' ? 'failing' : 'drained';
  return failure !== null && isAnswer(failure) ? 'unready' : 'silent';
}

type SavedReadinessWatch = ReturnType<ReadinessWatch['save']>;

/** Indices of the engines that differ. */
function changedAt(now: Readiness, before: Readiness): readonly number[] {
  return now.flatMap((replicas, at) => {
    const others = before[at];
    const isSame =
      others?.length === replicas.length && replicas.every((ready, index) => ready === others[index]);
    return isSame ? [] : [at];
  });
}
