import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import { WardropError } from '../errors.js';
import type { EngineState } from '../fleet/fleet-state.js';
import type { Orders } from '../fleet/operations.js';
import type { Relief } from '../plan/protection/relief.js';
import { entrySchemas } from '../plan/state-file/state-format.js';
import type { Claim } from './leadership.js';

/** Under the sync address. */
export const PEER_PATH = '/v1/peer';
/** Of what control servers tell each other; other formats are refused. */
const PEER_FORMAT = 1;

/** A usage report of an Envoy that called a peer. */
export interface ToldReport {
  /** `load-report`: what the load reports of an Envoy without the filter add up to. */
  readonly kind: 'report' | 'load-report';
  readonly frontendId: string;
  readonly nodeId: string;
  /** As filters send it. */
  readonly bytes: Uint8Array;
}

/** What of a publication is not in its plan. */
export interface LiveState {
  readonly engines: readonly EngineState[];
  readonly relief: Relief;
}

/** Which pools Envoys may be told to send requests to. */
export interface PoolReach {
  /** Nodes that have xDS from this server. */
  readonly connected: readonly string[];
  /** Pools whose clusters they have. */
  readonly given: readonly string[];
  /** Pools that filters which call this server may have a snapshot of. */
  readonly named: readonly string[];
}

/** How much of a peer's news a server has. */
export interface Known {
  /** The process that numbered it; numbers of another one mean nothing. */
  readonly instance: string;
  readonly reports: number;
  readonly state: number;
  readonly live: number;
}

export interface PeerQuestion {
  readonly instance: string;
  readonly known: Known;
}

export interface PeerNews {
  readonly claim: Claim;
  readonly known: Known;
  /** Names what its configuration means, its own addresses left out. */
  readonly configId: string;
  readonly planSequence: number | null;
  readonly orders: Orders;
  readonly reports: readonly ToldReport[];
  /** Its state file, when it has changed. */
  readonly state?: string;
  readonly live?: LiveState;
  /** Nodes that have their clusters from it; with `live`. */
  readonly configured?: readonly string[];
  /** With `live`; versions before have none. */
  readonly pools?: PoolReach;
}

export function encodeQuestion(question: PeerQuestion): string {
  return JSON.stringify({ format: PEER_FORMAT, ...question });
}

/** @throws {WardropError} WARDROP_PEER_INVALID */
export function decodeQuestion(text: string): PeerQuestion {
  return decode(isQuestion, text);
}

export function encodeNews({ reports, live, ...rest }: PeerNews): string {
  return JSON.stringify({
    format: PEER_FORMAT,
    ...rest,
    reports: reports.map(({ bytes, ...report }) => ({
      ...report,
      bytes: Buffer.from(bytes).toString('base64'),
    })),
    ...(live && { live: { engines: live.engines, relief: plainRelief(live.relief) } }),
  });
}

/** @throws {WardropError} WARDROP_PEER_INVALID */
export function decodeNews(text: string): PeerNews {
  const { reports, live, ...rest } = decode(isNews, text);
  return {
    ...rest,
    reports: reports.map(({ bytes, ...report }) => ({ ...report, bytes: Buffer.from(bytes, 'base64') })),
    ...(live && { live: { engines: live.engines, relief: reliefOf(live.relief) } }),
  };
}

type Entries = readonly (readonly [string, number])[];
type PlainRelief = { readonly [Name in keyof Relief]: Entries };

interface PlainNews extends Omit<PeerNews, 'reports' | 'live'> {
  readonly reports: readonly (Omit<ToldReport, 'bytes'> & { readonly bytes: string })[];
  readonly live?: { readonly engines: readonly EngineState[]; readonly relief: PlainRelief };
}

function plainRelief({ engines, replicas, limits, full, envoys }: Relief): PlainRelief {
  return {
    engines: [...engines],
    replicas: [...replicas],
    limits: [...limits],
    full: [...full],
    envoys: [...envoys],
  };
}

function reliefOf({ engines, replicas, limits, full, envoys }: PlainRelief): Relief {
  return {
    engines: new Map(engines),
    replicas: new Map(replicas),
    limits: new Map(limits),
    full: new Map(full),
    envoys: new Map(envoys),
  };
}

const id = { type: 'string', minLength: 1 };
const amount = { type: 'number', minimum: 0 };
const whole = { type: 'integer', minimum: 0 };
const list = (items: object) => ({ type: 'array', items });
const entries = (value: object) => list({ type: 'array', items: [id, value], minItems: 2, maxItems: 2 });
const amounts = entries(amount);
const shares = entries({ ...amount, maximum: 1 });
const record = (properties: Record<string, object>, optional: Record<string, object> = {}) => ({
  type: 'object',
  properties: { ...properties, ...optional },
  required: Object.keys(properties),
});

const known = record({ instance: { type: 'string' }, reports: whole, state: whole, live: whole });

const ajv = new Ajv({ strict: true, removeAdditional: 'all' });
const isQuestion = ajv.compile<PeerQuestion>(record({ format: { const: PEER_FORMAT }, instance: id, known }));
const isNews = ajv.compile<PlainNews>(
  record(
    {
      format: { const: PEER_FORMAT },
      claim: record({ instance: id, term: whole, leads: { type: 'boolean' }, sinceMs: amount }),
      known,
      configId: id,
      planSequence: { anyOf: [{ type: 'null' }, whole] },
      orders: record({
        drains: list(entrySchemas.drains),
        orders: list(entrySchemas.orders),
        actions: list(entrySchemas.actions),
      }),
      reports: list(
        record({
          kind: { enum: ['report', 'load-report'] },
          frontendId: id,
          nodeId: id,
          bytes: { type: 'string' },
        }),
      ),
    },
    {
      state: { type: 'string' },
      live: record({
        engines: list(
          record({
            id,
            replicas: list(record({ address: id, ready: { type: 'boolean' } })),
            health: amount,
            ramp: amount,
            drain: amount,
            penalty: amount,
            latencyFactor: amount,
          }),
        ),
        relief: record({
          engines: shares,
          replicas: shares,
          limits: amounts,
          full: amounts,
          envoys: amounts,
        }),
      }),
      configured: list(id),
      pools: record({ connected: list(id), given: list(id), named: list(id) }),
    },
  ),
);

function decode<T extends object>(check: ValidateFunction<T>, text: string): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(`is no JSON: ${(error as Error).message}`, error);
  }
  const format = (value as { format?: unknown } | null)?.format;
  if (format !== PEER_FORMAT) {
    throw invalid(`has format ${JSON.stringify(format)} instead of ${PEER_FORMAT}: it is of another version`);
  }
  if (check(value)) return value;
  const { instancePath, message } = (check.errors as ErrorObject[])[0]!;
  throw invalid(`is wrong at ${instancePath || '/'}: ${message}`);
}

function invalid(what: string, cause?: unknown): WardropError {
  return new WardropError('WARDROP_PEER_INVALID', `what a control server says ${what}`, { cause });
}
