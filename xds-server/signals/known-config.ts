import { classKey, id64 } from '../../wire/hash.js';
import type { Config, ExpectedDemand } from '../config/config.js';
import type { Address, Fleet } from '../fleet/fleet.js';
import type { ClassRate } from '../fleet/operations.js';
import { prioritiesOf } from '../fleet/priority-class.js';
import type { Profile, TokenMix } from '../profiles/profile.js';
import { SETTLED_EVIDENCE } from './demand/demand-band.js';
import { classId, type RateSeed } from './demand/demand-estimator.js';
import { mixOf } from './demand/request-mix.js';
import type { RequestSizes } from './demand/request-sizes.js';

/** The part of a configuration that signals go by. */
export type SignalsConfig = Pick<
  Config,
  'fleet' | 'profiles' | 'expectedDemand' | 'outlierPenalty' | 'steering' | 'steered'
>;

/** A configuration by what signals look things up with. */
export interface KnownConfig {
  readonly fleet: Fleet;
  readonly profiles: ReadonlyMap<string, Profile>;
  readonly enforcesPenalties: boolean;
  /** Filters choose the engine of every request; otherwise they learn it with the response, and count it from then on. */
  readonly choosesEngines: boolean;
  /** By `rowKey`: as the file says, and with the sizes that hold. */
  readonly configured: ReadonlyMap<string, ExpectedDemand>;
  readonly expected: ReadonlyMap<string, ExpectedDemand>;
  /** What reports name by a hash. */
  readonly poolIds: ReadonlyMap<bigint, string>;
  /** Pool and `classId` of each class, by its name in reports. */
  readonly classes: ReadonlyMap<bigint, ClassName>;
  readonly engineIds: ReadonlyMap<bigint, string>;
  readonly addresses: ReadonlyMap<bigint, Address>;
  /** By engine id. */
  readonly mixes: ReadonlyMap<string, TokenMix>;
  readonly engineIndex: ReadonlyMap<string, number>;
}

export function knownOf(config: SignalsConfig): KnownConfig {
  const { fleet, profiles, expectedDemand, outlierPenalty, steering, steered } = config;
  return {
    fleet,
    profiles,
    enforcesPenalties: outlierPenalty === 'enforce',
    choosesEngines: steering === 'filter' && steered === 1,
    configured: byRow(expectedDemand),
    expected: byRow(expectedDemand),
    poolIds: byHash(fleet.pools),
    classes: classesOf(fleet),
    engineIds: byHash(fleet.engines),
    addresses: addressesByHash(fleet),
    mixes: mixesOf(fleet, expectedDemand),
    engineIndex: new Map(fleet.engines.map(({ id }, at) => [id, at])),
  };
}

/** The same with the sizes of requests that are in force. */
export function withSizes(known: KnownConfig, sizes: Pick<RequestSizes, 'inForce'>): KnownConfig {
  const rows = [...known.configured.values()].map((row) => ({
    ...row,
    ...sizes.inForce(row.frontendId, row.poolId),
  }));
  return { ...known, expected: byRow(rows), mixes: mixesOf(known.fleet, rows) };
}

function mixesOf(fleet: Fleet, expected: readonly ExpectedDemand[]): ReadonlyMap<string, TokenMix> {
  return new Map(fleet.engines.map((engine) => [engine.id, mixOf(engine, fleet, expected)]));
}

/** What is believed of every class before anything is measured. */
export function seeds(
  { expectedDemand, fleet }: SignalsConfig,
  held: readonly ClassRate[],
): readonly RateSeed[] {
  const priorities = prioritiesOf(fleet);
  const heldRates = byClass(held, priorities);
  const others = priorities.filter((priority) => priority !== 0);
  return expectedDemand.flatMap(({ frontendId, poolId, requestsPerSecond }): RateSeed[] => {
    const seed = (expectedRps: number, priority?: number): RateSeed => {
      const row = { frontendId, poolId, ...(priority !== undefined && { priority }) };
      const rate = heldRates.get(classKeyOf(row));
      if (rate !== undefined) return { ...row, ...rate, evidence: SETTLED_EVIDENCE, source: 'held' };
      return {
        ...row,
        requestsPerSecond: expectedRps,
        evidence: Number.POSITIVE_INFINITY,
        source: 'expected',
      };
    };
    // Nobody can say in advance how many requests are of other classes.
    return [seed(requestsPerSecond), ...others.map((priority) => seed(0, priority))];
  });
}

/** Requests of classes that are no more are of none. */
function byClass(held: readonly ClassRate[], priorities: readonly number[]): ReadonlyMap<string, ClassRate> {
  const rates = new Map<string, ClassRate>();
  for (const { priority = 0, requestsPerSecond, ...row } of held) {
    const rate = priority !== 0 && priorities.includes(priority) ? { ...row, priority } : row;
    const key = classKeyOf(rate);
    const before = rates.get(key)?.requestsPerSecond ?? 0;
    rates.set(key, { ...rate, requestsPerSecond: before + requestsPerSecond });
  }
  return rates;
}

function classKeyOf({ frontendId, poolId, priority = 0 }: Omit<ClassRate, 'requestsPerSecond'>): string {
  return `${frontendId} ${classId(poolId, priority)}`;
}

export interface ClassName {
  readonly poolId: string;
  readonly id: string;
}

function classesOf(fleet: Fleet): ReadonlyMap<bigint, ClassName> {
  const priorities = prioritiesOf(fleet);
  return new Map(
    fleet.pools.flatMap(({ id: poolId }) => {
      const pool = id64(poolId);
      return priorities.map((priority): [bigint, ClassName] => [
        classKey(pool, priority),
        { poolId, id: classId(poolId, priority) },
      ]);
    }),
  );
}

export function rowKey(frontendId: string, poolId: string): string {
  return `${frontendId} ${poolId}`;
}

function byRow<T extends { readonly frontendId: string; readonly poolId: string }>(
  rows: readonly T[],
): ReadonlyMap<string, T> {
  return new Map(rows.map((row) => [rowKey(row.frontendId, row.poolId), row]));
}

function byHash(items: readonly { readonly id: string }[]): ReadonlyMap<bigint, string> {
  return new Map(items.map(({ id }) => [id64(id), id]));
}

function addressesByHash({ engines }: Fleet): ReadonlyMap<bigint, Address> {
  return new Map(engines.flatMap(({ endpoints }) => endpoints.map((address) => [id64(address), address])));
}
