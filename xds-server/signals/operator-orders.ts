import { WardropError } from '../errors.js';
import type { Fleet } from '../fleet/fleet.js';
import {
  type Drain,
  MOST_ACTIONS,
  type OperatorAction,
  type Orders,
  type PenaltyOrder,
} from '../fleet/operations.js';

/** Something that an operator wants; targets are engine ids, of drains also replica addresses. */
export interface OperatorRequest {
  readonly action: OperatorAction['action'];
  readonly target: string;
  /** How long it lasts. Default: 4 h for a drain, 1 h for a penalty that is held, 10 min for one that is released. */
  readonly forSeconds?: number | undefined;
  /** Time in which a drained engine loses its capacity. Default 30 s. */
  readonly overSeconds?: number | undefined;
  readonly by: string;
}

const DEFAULT_SECONDS = { drain: 4 * 3_600, 'hold-penalty': 3_600, 'release-penalty': 600 };
const DEFAULT_OVER_SECONDS = 30;
/** Capacity falls in steps, each worth a new plan. */
const DRAIN_STEPS = 4;

/** What operators want to be otherwise than signals would have it, for a limited time. */
export class OperatorOrders {
  #drains: readonly Drain[] = [];
  #orders: readonly PenaltyOrder[] = [];
  #actions: readonly OperatorAction[] = [];

  get state(): Orders {
    return { drains: this.#drains, orders: this.#orders, actions: this.#actions };
  }

  resume({ drains, orders, actions }: Orders): void {
    this.#drains = drains;
    this.#orders = orders;
    this.#actions = actions;
  }

  /** Forgets what is over, and what is about engines and replicas that are gone. */
  expire(fleet: Fleet, nowMs: number): void {
    this.resume(currentOrders(this.state, fleet, nowMs));
  }

  /**
   * Does what an operator asks for.
   *
   * @throws {WardropError} WARDROP_QUERY_INVALID
   */
  act(
    request: OperatorRequest,
    fleet: Fleet,
    isPenalised: (engineId: string) => boolean,
    nowMs: number,
  ): void {
    const { action, target, by } = request;
    const { engineId, address } = targetOf(target, fleet);
    if (action === 'drain') this.#drain(engineId, address, request, nowMs);
    else if (action === 'undrain') this.#undrain(engineId, address);
    else this.#order(action, engineId, address, request, isPenalised(engineId), nowMs);
    this.#actions = [...this.#actions, { atMs: this.#timeOfAction(nowMs), action, target, by }].slice(
      -MOST_ACTIONS,
    );
  }

  /** Later than that of all known actions: by the clock of another control server, or before this one was set back, some may be later than now. */
  #timeOfAction(nowMs: number): number {
    return Math.max(nowMs, (this.#actions.at(-1)?.atMs ?? 0) + 1);
  }

  /** 0..1, what a drain leaves of an engine. */
  drainFactor(engineId: string, nowMs: number): number {
    const drain = this.#drains.find((entry) => entry.engineId === engineId && entry.address === null);
    if (drain === undefined) return 1;
    if (drain.overSeconds === 0) return 0;
    // By the clock of another control server, or one that was set back, it may have begun later than now.
    const passedSeconds = Math.max(0, nowMs - drain.sinceMs) / 1_000;
    const left = 1 - passedSeconds / drain.overSeconds;
    // The first step is taken at once.
    return Math.max(0, (Math.ceil(left * DRAIN_STEPS) - 1) / DRAIN_STEPS);
  }

  isReplicaDrained(address: string): boolean {
    return this.#drains.some((drain) => drain.address === address);
  }

  order(engineId: string): PenaltyOrder['kind'] | undefined {
    return this.#orders.find((order) => order.engineId === engineId)?.kind;
  }

  #drain(engineId: string, address: string | null, request: OperatorRequest, nowMs: number): void {
    const overSeconds = address === null ? (request.overSeconds ?? DEFAULT_OVER_SECONDS) : 0;
    const untilMs = nowMs + (request.forSeconds ?? DEFAULT_SECONDS.drain) * 1_000;
    const before = this.#drains.find((drain) => drain.engineId === engineId && drain.address === address);
    const rest = this.#drains.filter((drain) => drain !== before);
    // Drained again, it does not come back first.
    const sinceMs = before?.sinceMs ?? nowMs;
    this.#drains = [...rest, { engineId, address, sinceMs, overSeconds, untilMs }];
  }

  #undrain(engineId: string, address: string | null): void {
    const rest = this.#drains.filter((drain) => drain.engineId !== engineId || drain.address !== address);
    if (rest.length === this.#drains.length) throw invalid(`${address ?? engineId} is not drained`);
    this.#drains = rest;
  }

  #order(
    action: 'hold-penalty' | 'release-penalty',
    engineId: string,
    address: string | null,
    request: OperatorRequest,
    isPenalised: boolean,
    nowMs: number,
  ): void {
    if (address !== null) throw invalid(`penalties are of engines; name ${engineId}`);
    if (action === 'hold-penalty' && !isPenalised) {
      throw invalid(`engine ${engineId} has no penalty to be held; drain takes it out of service`);
    }
    const kind = action === 'hold-penalty' ? 'hold' : 'release';
    const untilMs = nowMs + (request.forSeconds ?? DEFAULT_SECONDS[action]) * 1_000;
    const rest = this.#orders.filter((order) => order.engineId !== engineId);
    this.#orders = [...rest, { kind, engineId, sinceMs: nowMs, untilMs }];
  }
}

/** Without what is over, and what is about engines and replicas that this fleet does not have. */
export function currentOrders({ drains, orders, actions }: Orders, fleet: Fleet, nowMs: number): Orders {
  const exists = (engineId: string, address: string | null = null) =>
    fleet.engines.some(
      ({ id, endpoints }) => id === engineId && (address === null || endpoints.includes(address)),
    );
  return {
    drains: drains.filter(({ engineId, address, untilMs }) => untilMs > nowMs && exists(engineId, address)),
    orders: orders.filter(({ engineId, untilMs }) => untilMs > nowMs && exists(engineId)),
    actions,
  };
}

function targetOf(target: string, fleet: Fleet): { engineId: string; address: string | null } {
  for (const { id, endpoints } of fleet.engines) {
    if (id === target) return { engineId: id, address: null };
    if (endpoints.includes(target)) return { engineId: id, address: target };
  }
  const known = fleet.engines.map(({ id }) => id).join(', ');
  throw invalid(`there is no engine or replica ${JSON.stringify(target)}; engines: ${known}`);
}

function invalid(message: string): WardropError {
  return new WardropError('WARDROP_QUERY_INVALID', message);
}
