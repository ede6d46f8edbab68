import { Ajv, type ErrorObject } from 'ajv';
import { MOST_HEALTH } from '../../fleet/fleet-state.js';
import { OPERATOR_ACTIONS, type Operations } from '../../fleet/operations.js';
import { endOf } from '../partition/segments.js';
import { HASH_SPACE, type Plan, type PlanRow } from '../plan.js';
import { planId } from '../plan-id.js';
import type { ServerState } from './server-state.js';

/**
 * Version of the layout below. Older versions take from a file what they understand, so a newer layout may add and leave
 * out, but gives no name another meaning.
 */
export const STATE_FORMAT = 1;
/** Newer snapshots count on from the version that is stored, for ever. */
export const MOST_VERSION = Number.MAX_SAFE_INTEGER - 2 ** 51;

/** What a snapshot can have for a salt. */
export const SALT = /^[\x20-\x7e]{1,256}$/;

/** Row as stored: engines by index into `engineIds`, weights left out because the segments tell them exactly. */
interface StoredRow {
  readonly frontendId: string;
  readonly poolId: string;
  readonly demandRps: number;
  readonly retryRatio: number;
  readonly shed: PlanRow['shed'];
  readonly engineIds: readonly string[];
  /** [start, owner, backup], backup -1 for none. */
  readonly segments: readonly (readonly [number, number, number])[];
  /** [start, end, engine], latest first. */
  readonly former: readonly (readonly [number, number, number])[];
  readonly isPlain?: true;
}

export type StoredPlan = Omit<Plan, 'rows'> & { readonly rows: readonly StoredRow[] };

interface StoredState {
  readonly format: number;
  readonly salt: string;
  readonly snapshotVersion: number;
  readonly plan: StoredPlan | null;
  readonly operations?: Operations;
  readonly discovered?: NonNullable<ServerState['discovered']>;
}

const id = { type: 'string', minLength: 1 };
const amount = { type: 'number', minimum: 0 };
/** Milliseconds since the epoch, of a date that can be written. */
const time = { type: 'number', minimum: 0, maximum: 8.64e15 };
const fraction = { type: 'number', minimum: 0, maximum: 1 };
const point = { type: 'integer', minimum: 0, maximum: HASH_SPACE };
const index = { type: 'integer', minimum: 0 };

function record(properties: Record<string, object>, optional: Record<string, object> = {}): object {
  return {
    type: 'object',
    properties: { ...properties, ...optional },
    required: Object.keys(properties),
    additionalProperties: false,
  };
}

function list(items: object): object {
  return { type: 'array', items };
}

function tuple(...items: object[]): object {
  return { type: 'array', items, minItems: items.length, maxItems: items.length };
}

const rowsSchema = list(
  record(
    {
      frontendId: id,
      poolId: id,
      demandRps: amount,
      retryRatio: fraction,
      shed: list(record({ priority: { type: 'integer' }, fraction })),
      engineIds: list(id),
      segments: list(tuple(point, index, { type: 'integer', minimum: -1 })),
      former: list(tuple(point, point, index)),
    },
    { isPlain: { const: true } },
  ),
);

export const planSchema = record({
  id: { type: 'string', pattern: '^[0-9a-f]{16}$' },
  sequence: { type: 'integer', minimum: 1 },
  createdAtMs: time,
  objectiveSeconds: amount,
  engines: list(
    record({
      engineId: id,
      effectiveCapacity: amount,
      rho: amount,
      congestionPriceSeconds: amount,
      scarcityPriceSeconds: amount,
    }),
  ),
  rows: rowsSchema,
});

const operationSchemas = {
  drains: record({
    engineId: id,
    address: { anyOf: [{ type: 'null' }, id] },
    sinceMs: time,
    overSeconds: amount,
    untilMs: time,
  }),
  orders: record({ kind: { enum: ['hold', 'release'] }, engineId: id, sinceMs: time, untilMs: time }),
  penalties: record({ engineId: id, severity: { type: 'number', minimum: 1, maximum: 10 }, sinceMs: time }),
  actions: record({
    atMs: time,
    action: { enum: [...OPERATOR_ACTIONS] },
    target: id,
    by: { type: 'string' },
  }),
};
const measuredSchemas = {
  roundTrips: record({ frontendId: id, engineId: id, seconds: amount, atMs: time }),
  sizes: record({
    frontendId: id,
    poolId: id,
    promptTokens: amount,
    uncachedPromptTokens: amount,
    outputTokens: amount,
    atMs: time,
  }),
  rates: record({ frontendId: id, poolId: id, requestsPerSecond: amount }, { priority: { type: 'integer' } }),
  capacities: record(
    { engineId: id, share: { type: 'number', minimum: 0, maximum: MOST_HEALTH }, sinceMs: time },
    { basis: id },
  ),
};
/** One entry of each list of `Operations`. */
export const entrySchemas: Readonly<Record<keyof Operations, object>> = {
  ...operationSchemas,
  ...measuredSchemas,
};
export const foundSchema = tuple(id, list(id));

const lists = (entries: Record<string, object>) =>
  Object.fromEntries(Object.entries(entries).map(([name, entry]) => [name, list(entry)]));

const check = new Ajv({ strict: true }).compile<StoredState>(
  record(
    {
      format: { const: STATE_FORMAT },
      salt: { type: 'string', pattern: SALT.source },
      snapshotVersion: { type: 'integer', minimum: 0, maximum: MOST_VERSION },
      plan: { anyOf: [{ type: 'null' }, planSchema] },
    },
    { operations: record(lists(operationSchemas), lists(measuredSchemas)), discovered: list(foundSchema) },
  ),
);

export function encodeState(state: ServerState): string {
  return [...statePieces(state)].join('');
}

/** The same in pieces, as the rows of a large fleet take longer to write than all else may wait. */
export function* statePieces({ plan, ...rest }: ServerState): Generator<string> {
  yield `{"format":${STATE_FORMAT}`;
  for (const [name, value] of definedEntries(rest)) yield `,${JSON.stringify(name)}:${JSON.stringify(value)}`;
  yield ',"plan":';
  yield* plan === null ? ['null'] : planPieces(plan);
  yield '}\n';
}

function* planPieces(plan: Plan): Generator<string> {
  let before = '{';
  for (const [name, value] of definedEntries(plan)) {
    yield `${before}${JSON.stringify(name)}:`;
    yield* value === plan.rows ? rowPieces(plan.rows) : [JSON.stringify(value)];
    before = ',';
  }
  yield '}';
}

function* rowPieces(rows: readonly PlanRow[]): Generator<string> {
  yield '[';
  for (const [at, row] of rows.entries()) yield (at === 0 ? '' : ',') + JSON.stringify(storeRow(row));
  yield ']';
}

/** What is undefined is no JSON. */
function definedEntries(value: object): readonly (readonly [string, unknown])[] {
  return Object.entries(value).filter(([, item]) => item !== undefined);
}

/** Throws an Error that says where the text is wrong. */
export function decodeState(text: string): ServerState {
  const value: unknown = JSON.parse(text);
  const format = (value as { format?: unknown } | null)?.format;
  if (format !== STATE_FORMAT) {
    throw new Error(`its format is ${JSON.stringify(format)}, this version reads ${STATE_FORMAT}`);
  }
  if (!check(value)) {
    const { instancePath, message } = deepest(check.errors!);
    throw new Error(`${instancePath || '/'} ${message}`);
  }
  const { format: _format, plan, ...rest } = value;
  return { ...rest, plan: plan && checked(restorePlan(plan)) };
}

/** Of several errors the deepest tells what is wrong: the others are those of alternatives. */
function deepest(errors: readonly ErrorObject[]): ErrorObject {
  const depth = ({ instancePath }: ErrorObject) => instancePath.split('/').length;
  return errors.reduce((best, error) => (depth(error) > depth(best) ? error : best));
}

function storeRow(row: PlanRow): StoredRow {
  const former = row.former ?? [];
  const ids = new Set<string>();
  for (const { ownerId, backupId } of row.segments) {
    ids.add(ownerId);
    if (backupId !== null) ids.add(backupId);
  }
  for (const { engineId } of former) ids.add(engineId);
  const engineIds = [...ids].sort();
  const indexes = new Map(engineIds.map((engineId, position) => [engineId, position]));
  return {
    frontendId: row.frontendId,
    poolId: row.poolId,
    demandRps: row.demandRps,
    retryRatio: row.retryRatio,
    shed: row.shed,
    engineIds,
    segments: row.segments.map(({ start, ownerId, backupId }) => [
      start,
      indexes.get(ownerId)!,
      backupId === null ? -1 : indexes.get(backupId)!,
    ]),
    former: former.map(({ start, end, engineId }) => [start, end, indexes.get(engineId)!]),
    ...(row.isPlain && { isPlain: true }),
  };
}

/** @throws {Error} for segments that are no partition */
export function restorePlan(stored: StoredPlan): Plan {
  return {
    ...stored,
    rows: stored.rows.map((row, position) => restoreRow(row, `/plan/rows/${position}`)),
  };
}

/** @throws {Error} for a plan that is not the one that was saved */
export function checked(plan: Plan): Plan {
  if (planId(plan) === plan.id) return plan;
  throw new Error(`/plan does not have the content that its id ${plan.id} stands for`);
}

function restoreRow(stored: StoredRow, where: string): PlanRow {
  const engine = (position: number, path: string): string => {
    const engineId = stored.engineIds[position];
    if (engineId === undefined)
      throw new Error(`${where}/${path} names engine ${position}, which is not in engineIds`);
    return engineId;
  };
  const segments = stored.segments.map(([start, owner, backup], position) => {
    const path = `segments/${position}`;
    const end = stored.segments[position + 1]?.[0] ?? HASH_SPACE;
    if (start >= end || (position === 0 && start !== 0)) {
      throw new Error(`${where}/${path} runs from ${start} to ${end}`);
    }
    return { start, ownerId: engine(owner, path), backupId: backup < 0 ? null : engine(backup, path) };
  });
  return {
    frontendId: stored.frontendId,
    poolId: stored.poolId,
    demandRps: stored.demandRps,
    weights: weightsOf(segments),
    segments,
    former: stored.former.map(([start, end, owner], position) => {
      if (start >= end) throw new Error(`${where}/former/${position} runs from ${start} to ${end}`);
      return { start, end, engineId: engine(owner, `former/${position}`) };
    }),
    ...(stored.isPlain && { isPlain: true }),
    retryRatio: stored.retryRatio,
    shed: stored.shed,
  };
}

function weightsOf(segments: PlanRow['segments']): PlanRow['weights'] {
  const lengths = new Map<string, number>();
  segments.forEach(({ start, ownerId }, position) => {
    lengths.set(ownerId, (lengths.get(ownerId) ?? 0) + endOf(segments, position) - start);
  });
  return [...lengths]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([engineId, length]) => ({ engineId, weight: length / HASH_SPACE }));
}
