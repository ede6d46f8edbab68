import { isDeepStrictEqual } from 'node:util';
import { Ajv } from 'ajv';
import type { Operations } from '../../fleet/operations.js';
import type { Plan } from '../plan.js';
import { planId } from '../plan-id.js';
import type { ServerState } from './server-state.js';
import {
  checked,
  decodeState,
  entrySchemas,
  foundSchema,
  MOST_VERSION,
  planSchema,
  restorePlan,
  SALT,
  STATE_FORMAT,
  type StoredPlan,
} from './state-format.js';

export interface ReadState {
  readonly state: ServerState;
  /** Why the file is not as this version writes it, and what of it could not be read; null when it is. */
  readonly problem: string | null;
}

/** Fields that are not known here are taken away. */
const ajv = new Ajv({ strict: true, removeAdditional: true });
const isPlan = ajv.compile<StoredPlan>(planSchema);
const isFound = ajv.compile<readonly [string, readonly string[]]>(foundSchema);
const entryChecks = Object.entries(entrySchemas).map(
  ([name, schema]) => [name, ajv.compile(schema)] as const,
);

/**
 * Takes from a state file what this version understands, also when another one wrote it. The salt above all: with another
 * one every conversation would move.
 *
 * @throws {Error} when there is not even that
 */
export function readState(text: string): ReadState {
  try {
    return { state: decodeState(text), problem: null };
  } catch (error) {
    const salvaged = salvage(text);
    if (salvaged === undefined) throw error;
    const { state, lost } = salvaged;
    const but = lost.length === 0 ? 'what this version does not know' : lost.join(', ');
    return { state, problem: `${(error as Error).message}. It is taken over but for ${but}` };
  }
}

interface Salvaged {
  readonly state: ServerState;
  /** Names of what could not be read, or only in part. */
  readonly lost: readonly string[];
}

function salvage(text: string): Salvaged | undefined {
  const file = objectOf(text);
  const { salt, snapshotVersion, format } = file;
  if (typeof salt !== 'string' || !SALT.test(salt)) return undefined;
  const lost: string[] = [];
  const plan = file.plan === null ? null : planOf(file.plan, format);
  if (plan === undefined) lost.push('plan');
  if (!isVersion(snapshotVersion)) lost.push('snapshotVersion');
  const discovered = entriesOf(file.discovered ?? [], isFound);
  if (!discovered.isWhole) lost.push('discovered');
  const operations = operationsOf(file.operations ?? {}, lost);
  return {
    state: {
      salt,
      plan: plan ?? null,
      snapshotVersion: isVersion(snapshotVersion) ? snapshotVersion : 0,
      operations,
      discovered: discovered.entries,
    },
    lost,
  };
}

function objectOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Versions of snapshots come from the clock, too, so that a lost one does no harm. */
function isVersion(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MOST_VERSION;
}

/** With its loads and prices if they can be read, too: these are new with the next plan, partitions go on. */
function planOf(stored: unknown, format: unknown): Plan | undefined {
  const partitions = { ...(stored as object), engines: [], objectiveSeconds: 0 };
  return wholePlanOf(stored, format) ?? wholePlanOf(partitions, format);
}

/** A plan of another version may have an id of more than is read here; of this version, its id tells of damage. */
function wholePlanOf(stored: unknown, format: unknown): Plan | undefined {
  const known = structuredClone(stored);
  try {
    if (!isPlan(known)) return undefined;
    const plan = restorePlan(known);
    const isOther = format !== STATE_FORMAT || !isDeepStrictEqual(known, stored);
    return isOther ? { ...plan, id: planId(plan) } : checked(plan);
  } catch {
    return undefined;
  }
}

function operationsOf(stored: unknown, lost: string[]): Operations {
  const lists = (typeof stored === 'object' && stored !== null ? stored : {}) as Record<string, unknown>;
  const read = entryChecks.map(([name, check]) => {
    const { entries, isWhole } = entriesOf(lists[name] ?? [], check);
    if (!isWhole) lost.push(name);
    return [name, entries];
  });
  return Object.fromEntries(read) as Operations;
}

function entriesOf<T>(
  stored: unknown,
  check: (entry: unknown) => entry is T,
): { readonly entries: readonly T[]; readonly isWhole: boolean } {
  if (!Array.isArray(stored)) return { entries: [], isWhole: false };
  const entries = stored.filter(check);
  return { entries, isWhole: entries.length === stored.length };
}
