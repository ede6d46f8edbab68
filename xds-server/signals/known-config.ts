import { isDeepStrictEqual } from 'node:util';
import { classKey, id64 } from '../../wire/hash.js';
import type { Config, ExpectedDemand, RequestShape } from '../config/config.js';
import type { Address, Fleet } from '../fleet/fleet.js';
import { classId, prioritiesOf } from '../fleet/priority-class.js';
import { rowKey } from '../fleet/row-key.js';
import type { Profile, TokenMix } from '../profiles/profile.js';
import { mixesOf } from './request-mix.js';

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

interface SizesInForce {
  /** Undefined where the configured ones hold. */
  inForce(frontendId: string, poolId: string): Partial<RequestShape> | undefined;
}

/** The same with the sizes of requests that are in force. */
export function withSizes(known: KnownConfig, sizes: SizesInForce): KnownConfig {
  const rows = [...known.configured.values()].map((row) => ({
    ...row,
    ...sizes.inForce(row.frontendId, row.poolId),
  }));
  return { ...known, expected: byRow(rows), mixes: mixesOf(known.fleet, rows) };
}

/**
 * Ids of the engines that are others than before, as when replicas were added to them; undefined where anything besides engines
 * is another.
 */
export function changedEngines(before: KnownConfig, now: KnownConfig): ReadonlySet<string> | undefined {
  if (!isDeepStrictEqual(besidesEngines(before), besidesEngines(now))) return undefined;
  const engines = new Map(before.fleet.engines.map((engine) => [engine.id, engine]));
  const changed = now.fleet.engines.filter((engine) => !isDeepStrictEqual(engine, engines.get(engine.id)));
  return new Set(changed.map(({ id }) => id));
}

function besidesEngines({
  fleet: { engines: _engines, ...fleet },
  profiles,
  configured,
}: KnownConfig): object {
  return { fleet, profiles, configured };
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

function byRow<T extends { readonly frontendId: string; readonly poolId: string }>(
  rows: readonly T[],
): ReadonlyMap<string, T> {
  return new Map(rows.map((row) => [rowKey(row), row]));
}

function byHash(items: readonly { readonly id: string }[]): ReadonlyMap<bigint, string> {
  return new Map(items.map(({ id }) => [id64(id), id]));
}

function addressesByHash({ engines }: Fleet): ReadonlyMap<bigint, Address> {
  return new Map(engines.flatMap(({ endpoints }) => endpoints.map((address) => [id64(address), address])));
}
