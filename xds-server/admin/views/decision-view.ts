import {
  CLIENT_STEERING_HEADERS,
  CLUSTER_HEADER,
  DESTINATION_HEADER,
  RETRIES_HEADER,
  ROUTE_HEADER,
} from '../../../wire/names.js';
import { decodeSnapshot } from '../../../wire/snapshot-reader.js';
import type { SnapshotPool, SnapshotView } from '../../../wire/snapshot-view.js';
import { envoyOptions } from '../../control/publishing/envoy-options.js';
import type { FilterOutcome } from '../../control/questions/filter-run.js';
import { snapshotWeights } from '../../plan/snapshot-weights.js';
import { issuedSnapshot } from '../issued-snapshot.js';
import type { DecideRequest } from '../requests/decide-request.js';
import type { ShownServer } from '../shown-server.js';

/** What the filter would do with a request, and why. */
export interface DecisionView {
  readonly planId: string;
  /** As the response would tell it. */
  readonly reason: string | null;
  /** `observe` when the request would not be steered. */
  readonly mode: string | null;
  readonly pool: string | null;
  readonly engine: string | null;
  /** 0..1 share of the pool's keys whose segments the engine owns. */
  readonly weight: number | null;
  /** To be tried in this order. */
  readonly endpoints: readonly { readonly address: string; readonly engine: string | null }[];
  readonly retries: number | null;
  /** Which of Envoy's routes, and so which time limits; null for the one without a name. */
  readonly route: string | null;
  /** What the filter would answer instead of passing the request on. */
  readonly answer: { readonly status: number; readonly code: string | null; readonly message: string } | null;
  readonly note: string;
}

const NOTE =
  'This is what an Envoy without any other request does. One at work also knows its requests in flight, the replicas ' +
  'that its guardrail avoids, the conversations that began elsewhere and what is left of its retry budget.';

/**
 * Runs the filter on a request, over the snapshot in force.
 *
 * @throws {WardropError} WARDROP_QUERY_INVALID for an unknown frontend, WARDROP_NOT_READY before the first plan
 */
export function decisionView(
  server: Pick<ShownServer, 'board' | 'config' | 'runFilter'>,
  { frontend, ...request }: DecideRequest,
): DecisionView {
  const { bytes } = issuedSnapshot(server, frontend);
  const { steering, filter } = envoyOptions(server.config, frontend);
  const nativeSteering = steering !== 'override-host';
  // As our listeners do, before the filter sees a request.
  const headers = request.headers.filter(([name]) => !CLIENT_STEERING_HEADERS.includes(name));
  const outcome = server.runFilter({ ...filter, nativeSteering }, bytes, { ...request, headers });
  const view = shown(outcome, decodeSnapshot(bytes));
  // The filter tells its reason together with the engine, which Envoy picks here.
  return nativeSteering && view.answer === null ? { ...view, reason: 'native' } : view;
}

function shown({ decision, requestHeaders, reply }: FilterOutcome, snapshot: SnapshotView): DecisionView {
  const { reason = null, engine = null, mode = null } = decision;
  const pool = snapshot.pools.find(({ cluster }) => cluster === requestHeaders.get(CLUSTER_HEADER));
  const addresses = requestHeaders.get(DESTINATION_HEADER)?.split(',') ?? [];
  const retries = requestHeaders.get(RETRIES_HEADER);
  return {
    planId: snapshot.planId,
    reason,
    mode,
    pool: pool?.id ?? null,
    engine,
    weight: pool === undefined || engine === null ? null : weightOf(engine, pool, snapshot),
    endpoints: addresses.map((address) => ({ address, engine: engineAt(address, snapshot) })),
    retries: retries === undefined ? null : Number(retries),
    route: requestHeaders.get(ROUTE_HEADER) ?? null,
    answer: reply === undefined ? null : { status: reply.status, ...errorIn(reply.body) },
    note: NOTE,
  };
}

function weightOf(engineId: string, pool: SnapshotPool, { engines }: SnapshotView): number {
  return snapshotWeights(pool, engines).find((entry) => entry.engineId === engineId)?.weight ?? 0;
}

function engineAt(address: string, { engines }: SnapshotView): string | null {
  const engine = engines.find(({ replicas }) => replicas.some((replica) => replica.address === address));
  return engine?.id ?? null;
}

/** What an answer in the shape of OpenAI's errors says; of any other, its text. */
function errorIn(body: string): { readonly code: string | null; readonly message: string } {
  try {
    const { error } = JSON.parse(body) as { error: { code: string; message: string } };
    return { code: error.code, message: error.message };
  } catch {
    return { code: null, message: body };
  }
}
