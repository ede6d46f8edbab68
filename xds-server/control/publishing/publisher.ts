import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Fleet } from '../../fleet/fleet.js';
import type { EngineState } from '../../fleet/fleet-state.js';
import type { Plan } from '../../plan/plan.js';
import type { Relief } from '../../plan/protection/relief.js';
import { SnapshotViews, type SnapshotViewsInput } from '../../plan/snapshot-view.js';
import type { SnapshotBoard, SnapshotContent } from '../../sync/snapshot-board.js';
import { buildResources, type EnvoyOptions, type WeightPlan, type XdsServer } from '../../xds/index.js';
import { weightsToPush } from './pushed-weights.js';
import { Turns } from './turns.js';

/** A plan with the fleet and the readiness that it is published for. */
export interface Publication {
  readonly plan: Plan;
  /** As it is configured: another object is another fleet. */
  readonly fleet: Fleet;
  /** Round trips in force; default: as configured. */
  readonly networkSeconds?: Fleet['networkSeconds'];
  /** Same order as `fleet.engines`. */
  readonly engines: readonly EngineState[];
}

export interface PublisherOptions {
  readonly xds: Pick<XdsServer, 'setResources' | 'retain' | 'settled'>;
  readonly board: SnapshotBoard;
  readonly salt: () => string;
  readonly wasmModule: Uint8Array;
  /** How the Envoys of a frontend are set up. */
  readonly envoy: (frontendId: string) => EnvoyOptions;
  /** 0..1 share of keys that are steered. */
  readonly steered: () => number;
  /** How engines are relieved until the next plan. */
  readonly relief: () => Relief;
  /** Least milliseconds between two pushes of endpoints that differ in weights only. */
  readonly edsIntervalMs: () => number;
  /** Whether snapshots of another control server name this pool. */
  readonly isNamedElsewhere: (poolId: string) => boolean;
  /** Takes what was thrown on the way to a frontend. */
  readonly onFault: (error: unknown) => void;
  readonly now: () => number;
}

/** Weights that differ from what was pushed by no more than this need no push, where Envoy itself picks nothing. */
const SPARED_DIFFERENCE = 0.02;
/** Longest wait for Envoys to accept new endpoints before snapshots name them. */
const ANNOUNCE_TIMEOUT_MS = 1_000;
/** Longest wait for Envoys to take a snapshot without the departed endpoints before these are removed. */
const DEPART_TIMEOUT_MS = 5_000;
const DEPART_POLL_MS = 100;
/** Other VMs of an Envoy install a snapshot within this time after the one that fetched it. */
const INSTALL_GRACE_MS = 500;

interface Pushed {
  readonly weights: WeightPlan;
  readonly engines: readonly EngineState[];
  readonly options: EnvoyOptions;
}

/**
 * Brings plans to the Envoys of all frontends, of one after the other: what else there is to do does not wait until all have it. A newer
 * publication takes the place of one that a frontend has not had its turn for.
 */
export class Publisher {
  readonly #options: PublisherOptions;
  readonly #turns: Turns;
  readonly #views: LatestViews;
  readonly #frontends = new Map<string, FrontendPublisher>();

  constructor(options: PublisherOptions) {
    this.#options = options;
    this.#turns = new Turns(options.now, options.onFault);
    this.#views = new LatestViews(options);
  }

  publish(publication: Publication): void {
    const ids = new Set(publication.fleet.frontends.map(({ id }) => id));
    for (const [id, frontend] of this.#frontends) {
      if (ids.has(id)) continue;
      frontend.stop();
      this.#frontends.delete(id);
    }
    this.#options.board.retain(ids);
    this.#options.xds.retain(ids);
    for (const id of ids) {
      let frontend = this.#frontends.get(id);
      if (frontend === undefined) {
        frontend = new FrontendPublisher(id, this.#options, this.#turns, this.#views);
        this.#frontends.set(id, frontend);
      }
      frontend.publish(publication);
    }
  }

  /** Brings what is not of the plan in force, such as reliefs, with the plan that is published. */
  refresh(): void {
    for (const frontend of this.#frontends.values()) frontend.refresh();
  }

  /** Pools whose clusters all Envoys have, and those that filters may have a snapshot of. */
  get pools(): { readonly given: readonly string[]; readonly named: readonly string[] } {
    const frontends = [...this.#frontends.values()];
    const given = frontends.map((frontend) => frontend.given);
    const named = new Set(frontends.flatMap((frontend) => [...frontend.named]));
    return {
      given: [...(given[0] ?? [])].filter((id) => given.every((ids) => ids.has(id))).sort(),
      named: [...named].sort(),
    };
  }

  /** Takes from Envoys what only snapshots of another control server have named of late, and name no more. */
  letGo(): void {
    for (const frontend of this.#frontends.values()) frontend.letGo();
  }

  /** Resolves when no change of the fleet is under way. */
  async idle(): Promise<void> {
    await this.#turns.idle();
    await Promise.all([...this.#frontends.values()].map((frontend) => frontend.idle()));
  }

  stop(): void {
    for (const frontend of this.#frontends.values()) frontend.stop();
  }
}

/** Makes the snapshots of a publication; what all frontends share is made once. */
class LatestViews {
  readonly #options: PublisherOptions;
  #latest: { readonly input: SnapshotViewsInput; readonly views: SnapshotViews } | undefined;

  constructor(options: PublisherOptions) {
    this.#options = options;
  }

  contentOf(
    { plan, fleet, engines, networkSeconds = fleet.networkSeconds }: Publication,
    frontendId: string,
  ): SnapshotContent {
    const { salt, steered, relief } = this.#options;
    const given = {
      plan,
      fleet,
      engines,
      networkSeconds,
      salt: salt(),
      steered: steered(),
      relief: relief(),
    };
    const input: SnapshotViewsInput = { ...given, version: 0, issuedAtMs: 0 };
    if (this.#latest === undefined || !isSameInput(this.#latest.input, input)) {
      this.#latest = { input, views: new SnapshotViews(input) };
    }
    const { version: _version, issuedAtMs: _issuedAtMs, ...content } = this.#latest.views.of(frontendId);
    return content;
  }
}

function isSameInput(a: SnapshotViewsInput, b: SnapshotViewsInput): boolean {
  return (Object.keys(b) as (keyof SnapshotViewsInput)[]).every((key) => a[key] === b[key]);
}

/**
 * Publishes to one frontend, make before break: endpoints are known to Envoy before a snapshot names them, and are
 * removed from Envoy after the last snapshot that named them. Within one fleet, snapshots go out at once.
 */
class FrontendPublisher {
  readonly #id: string;
  readonly #options: PublisherOptions;
  readonly #turns: Turns;
  readonly #views: LatestViews;
  /** What waits for this frontend's turn: the newest publication, and whether to look again at what is published. */
  #next: Publication | undefined;
  #isStale = false;
  #isWaiting = false;
  #target: Publication | undefined;
  /** What endpoints were last pushed for. */
  #pushed: Pushed | undefined;
  #pushedAtMs = 0;
  #pushTimer: NodeJS.Timeout | undefined;
  /** The fleet that snapshots are made for; another one is being announced while the target's differs. */
  #snapshotFleet: Fleet | undefined;
  /** A fleet that filters may still have a snapshot of. */
  #departing: Fleet | undefined;
  /** Fleets before that, the oldest first, while another control server names pools of theirs that are gone. */
  #kept: readonly Fleet[] = [];
  #transition: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(id: string, options: PublisherOptions, turns: Turns, views: LatestViews) {
    this.#id = id;
    this.#options = options;
    this.#turns = turns;
    this.#views = views;
  }

  publish(target: Publication): void {
    this.#next = target;
    this.#soon();
  }

  refresh(): void {
    this.#isStale = true;
    this.#soon();
  }

  #soon(): void {
    if (this.#isWaiting) return;
    this.#isWaiting = true;
    this.#turns.run(() => {
      this.#isWaiting = false;
      if (!this.#stopped) this.#goOn();
    });
  }

  #goOn(): void {
    const next = this.#next;
    const isStale = this.#isStale;
    this.#next = undefined;
    this.#isStale = false;
    // The snapshot of another fleet comes only when that is announced.
    if (isStale && next?.fleet !== this.#snapshotFleet) this.#issueAgain();
    if (next !== undefined) this.#take(next);
  }

  #take(target: Publication): void {
    const isAnnouncing = this.#target !== undefined && this.#target.fleet !== this.#snapshotFleet;
    if (this.#snapshotFleet === undefined) {
      this.#pushEndpoints(target);
      this.#snapshotFleet = target.fleet;
      this.#issueSnapshot(target);
    } else if (isAnnouncing) {
      this.#pushEndpoints(target);
    } else if (target.fleet === this.#snapshotFleet) {
      this.#issueSnapshot(target);
      this.#pushEndpointsWhenDue(target);
    } else {
      this.#departing = this.#snapshotFleet;
      this.#pushEndpoints(target);
      this.#transition = this.#changeFleet().catch(this.#options.onFault);
    }
    // Last: what fails on the way here is begun anew with the next publication.
    this.#target = target;
  }

  /** While a fleet is being announced, the snapshot that follows has it anyway. */
  #issueAgain(): void {
    if (this.#target !== undefined && this.#target.fleet === this.#snapshotFleet)
      this.#issueSnapshot(this.#target);
  }

  idle(): Promise<void> {
    return this.#transition;
  }

  stop(): void {
    this.#stopped = true;
    this.#forgetPush();
  }

  /** From when Envoys have been told of the endpoints of another fleet. */
  async #changeFleet(): Promise<void> {
    const { xds, board, now } = this.#options;
    await xds.settled(this.#id, ANNOUNCE_TIMEOUT_MS);
    if (this.#stopped) return;
    this.#snapshotFleet = this.#target!.fleet;
    this.refresh();
    await this.#turns.idle();
    const deadline = now() + DEPART_TIMEOUT_MS;
    while (!board.isTaken(this.#id) && now() < deadline) await sleep(DEPART_POLL_MS);
    await sleep(INSTALL_GRACE_MS);
    this.#kept = this.#previousFleets.filter((fleet) => this.#isNamedElsewhere(fleet));
    this.#departing = undefined;
    this.#pushRest();
    await this.#turns.idle();
  }

  /** Pools whose clusters Envoys have. */
  get given(): ReadonlySet<string> {
    return poolsOf(this.#snapshotFleet, ...this.#previousFleets);
  }

  /** Pools that filters may have a snapshot of. */
  get named(): ReadonlySet<string> {
    return poolsOf(this.#snapshotFleet, this.#departing);
  }

  letGo(): void {
    const kept = this.#kept.filter((fleet) => this.#isNamedElsewhere(fleet));
    if (kept.length === this.#kept.length) return;
    this.#kept = kept;
    this.#pushRest();
  }

  /** Gives Envoys what is left when something has gone. */
  #pushRest(): void {
    this.#turns.run(() => {
      if (!this.#stopped) this.#pushEndpoints(this.#target!);
    });
  }

  get #previousFleets(): readonly Fleet[] {
    return this.#departing === undefined ? this.#kept : [...this.#kept, this.#departing];
  }

  /** Whether another control server names pools of this fleet that are gone. */
  #isNamedElsewhere(fleet: Fleet): boolean {
    const present = poolsOf(this.#target?.fleet);
    return fleet.pools.some(({ id }) => !present.has(id) && this.#options.isNamedElsewhere(id));
  }

  #issueSnapshot(target: Publication): void {
    this.#options.board.publish(this.#views.contentOf(target, this.#id));
  }

  /** Pushes health and other options at once; rebuilding load balancers for weights alone is rationed. */
  #pushEndpointsWhenDue(target: Publication): void {
    const pushed = this.#pushed!;
    const options = this.#options.envoy(this.#id);
    if (!isDeepStrictEqual(pushed.options, options)) {
      this.#pushEndpoints(target);
      return;
    }
    this.#forgetPush();
    const weights = weightsToPush(pushed.weights, this.#weightsOf(target.plan), leastDifference(options));
    if (!hasSameHealth(pushed.engines, target.engines)) {
      this.#pushEndpoints(target, weights ?? pushed.weights);
    } else if (weights !== undefined) {
      const waitMs = this.#pushedAtMs + this.#options.edsIntervalMs() - this.#options.now();
      if (waitMs <= 0) this.#pushEndpoints(target, weights);
      else this.#pushLater(target, weights, waitMs);
    }
  }

  /** Unless there is something newer by then. */
  #pushLater(target: Publication, weights: WeightPlan, waitMs: number): void {
    const timer = setTimeout(() => {
      this.#turns.run(() => {
        if (this.#pushTimer === timer) this.#pushEndpoints(target, weights);
      });
    }, waitMs);
    this.#pushTimer = timer;
  }

  #forgetPush(): void {
    clearTimeout(this.#pushTimer);
    this.#pushTimer = undefined;
  }

  #pushEndpoints({ plan, fleet, engines }: Publication, weights: WeightPlan = this.#weightsOf(plan)): void {
    const { xds, wasmModule, envoy, now } = this.#options;
    this.#forgetPush();
    const options = envoy(this.#id);
    this.#pushed = { weights, engines, options };
    this.#pushedAtMs = now();
    xds.setResources(
      this.#id,
      buildResources({
        fleet,
        frontendId: this.#id,
        plan: weights,
        engines,
        wasmModule,
        ...options,
        previousFleets: this.#previousFleets,
      }),
    );
  }

  #weightsOf(plan: Plan): WeightPlan {
    return { rows: plan.rows.filter(({ frontendId }) => frontendId === this.#id) };
  }
}

/** A filter that picks the host needs the weights in Envoy only where its list is used up. */
function leastDifference({ steering }: EnvoyOptions): number {
  return steering === undefined || steering === 'override-host' ? SPARED_DIFFERENCE : 0;
}

function poolsOf(...fleets: readonly (Fleet | undefined)[]): ReadonlySet<string> {
  return new Set(fleets.flatMap((fleet) => fleet?.pools.map(({ id }) => id) ?? []));
}

function hasSameHealth(a: readonly EngineState[], b: readonly EngineState[]): boolean {
  return a.every((engine, at) => {
    const other = b[at]!;
    return (
      engine.drain === other.drain &&
      engine.replicas.every((replica, index) => replica.ready === other.replicas[index]?.ready)
    );
  });
}
