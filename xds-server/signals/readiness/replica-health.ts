/** Answer to one readiness probe. */
export type ProbeResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly kind: ProbeFailure; readonly detail: string };

/**
 * `refused`: nobody listens. `unavailable`: a 503. `unready`: a 400. `broken`: an open connection ended. `timeout`: no
 * answer in time. `status`: any other but a 2xx.
 */
export type ProbeFailure = 'refused' | 'unavailable' | 'unready' | 'broken' | 'timeout' | 'status' | 'other';

/** What probes say about one replica. */
export interface ReplicaHealth {
  /** A replica that was never probed is taken for up, so that a new control server removes nobody. */
  readonly state: 'unknown' | 'up' | 'down';
  /** Results in a row that contradict the state. */
  readonly contrary: number;
  readonly sinceMs: number;
  /** Of the last failed probe; empty after a good one. */
  readonly detail: string;
  /** How the last probe failed; null after a good one. */
  readonly failure: ProbeFailure | null;
}

/** Contrary results in a row that change the state. */
const ENOUGH_CONTRARY = 2;
/** As many pages that say so of an engine that serves well: about a second, as one that shuts down serves on for a while. */
const ENOUGH_TOLD = 4;

/** Whether the health page said something. */
export function isAnswer(kind: ProbeFailure): boolean {
  return kind === 'unavailable' || kind === 'unready' || kind === 'status';
}

/**
 * Whether a page says that its replica takes no more, whatever that still answers: engines that shut down (SGLang) or
 * lost their device (vLLM) say 503, and end what they have under way. Triton says 400 instead, which any server may say to
 * what it was never meant to be asked: it counts where the page was good before. Others hang and break while engines serve.
 */
function isGoodbye(kind: ProbeFailure, { state }: ReplicaHealth): boolean {
  return kind === 'unavailable' || (kind === 'unready' && state === 'up');
}

export function unknownHealth(nowMs: number): ReplicaHealth {
  return { state: 'unknown', contrary: 0, sinceMs: nowMs, detail: '', failure: null };
}

/**
 * The state after one more probe. `servesWell`: frontends report answers from this engine and no failures; then only
 * refused connections, or a page that says for about a second that it takes no more, take the replica out.
 */
export function afterProbe(
  health: ReplicaHealth,
  result: ProbeResult,
  servesWell: boolean,
  nowMs: number,
): ReplicaHealth {
  const [detail, failure] = result.ok ? ['', null] : [result.detail, result.kind];
  if (health.state === 'unknown' && result.ok)
    return { state: 'up', contrary: 0, sinceMs: nowMs, detail, failure };
  if (result.ok === (health.state !== 'down')) return { ...health, contrary: 0, detail, failure };
  const contrary = health.contrary + 1;
  const isDoubted = !result.ok && servesWell && result.kind !== 'refused';
  const isTold = isDoubted && isGoodbye(result.kind, health);
  if (contrary < (isTold ? ENOUGH_TOLD : ENOUGH_CONTRARY)) return { ...health, contrary, detail, failure };
  // However many they are, a single 503 after them is not yet enough.
  if (isDoubted && !isTold) return { ...health, contrary: ENOUGH_CONTRARY, detail, failure };
  return { state: result.ok ? 'up' : 'down', contrary: 0, sinceMs: nowMs, detail, failure };
}

/** Whether the next probe should follow at once: a first failure is to be confirmed or cleared. */
export function isSuspect(health: ReplicaHealth): boolean {
  return health.state !== 'down' && health.contrary === 1;
}
