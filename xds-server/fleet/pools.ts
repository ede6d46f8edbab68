import { MAX_MODEL_NEEDS } from '../../wire/layout.js';
import type { NeedCondition } from '../../wire/snapshot-view.js';
import { byId } from '../collections.js';
import type { Engine, Pool } from './fleet.js';
import type { ModelNeeds, Need } from './needs.js';

type EngineTraits = Pick<Engine, 'id' | 'models' | 'labels'>;

/** Between the model and the needs in a pool's id; no part of either. */
const SEPARATOR = '~';

export function meets({ labels }: EngineTraits, need: Need): boolean {
  if (need.labels === null) return false;
  return Object.entries(need.labels).every(([name, values]) => {
    const value = labels[name];
    return value !== undefined && values.includes(value);
  });
}

/** Needs that not every engine of the model meets, sorted by id. */
export function needsThatMatter(
  model: string,
  engines: readonly EngineTraits[],
  needs: readonly Need[],
): readonly Need[] {
  const serving = engines.filter(({ models }) => models.includes(model));
  return needs.filter((need) => !serving.every((engine) => meets(engine, need))).sort(byId);
}

/**
 * The pools of a model: need sets that the same engines meet share one, which is named after the smallest of them
 * (fewest needs, then first by id), so that its name holds while engines come and go. `engines` are sorted by id.
 *
 * @throws {RangeError} when more needs make a difference than filters can tell apart
 */
export function poolsOfModel(
  model: string,
  engines: readonly EngineTraits[],
  needs: readonly Need[],
): { readonly pools: readonly Pool[]; readonly modelNeeds: ModelNeeds } {
  const relevant = needsThatMatter(model, engines, needs);
  if (relevant.length > MAX_MODEL_NEEDS) throw new RangeError(`${model} has ${relevant.length} needs`);
  const serving = engines.filter(({ models }) => models.includes(model));
  const pools = new Map<string, Pool>();
  const poolIds = new Array<string | null>(2 ** relevant.length).fill(null);
  for (const combination of bySize(relevant.length)) {
    const carried = relevant.filter((_, bit) => (combination >> bit) & 1);
    if (!canOccur(carried, relevant)) continue;
    const engineIds = serving
      .filter((engine) => carried.every((need) => meets(engine, need)))
      .map(({ id }) => id);
    if (engineIds.length === 0) continue;
    const key = engineIds.join('\n');
    let pool = pools.get(key);
    if (pool === undefined) {
      const ids = carried.map(({ id }) => id);
      pool = { id: [model, ...ids].join(SEPARATOR), model, needs: ids, engineIds };
      pools.set(key, pool);
    }
    poolIds[combination] = pool.id;
  }
  return {
    pools: [...pools.values()],
    modelNeeds: { model, needs: relevant.map(({ id }) => id), poolIds },
  };
}

/** All combinations of `count` bits, those of few bits first; among equals, in the order of the words that bits spell. */
function bySize(count: number): readonly number[] {
  const spell = (combination: number) =>
    [...Array(count).keys()].filter((bit) => (combination >> bit) & 1).join();
  return [...Array(2 ** count).keys()]
    .map((combination) => ({ combination, bits: spell(combination) }))
    .sort((a, b) => a.bits.length - b.bits.length || (a.bits < b.bits ? -1 : 1))
    .map(({ combination }) => combination);
}

/** Whether a request can carry exactly these of the needs. */
function canOccur(carried: readonly Need[], all: readonly Need[]): boolean {
  return (
    carried.every((a) => carried.every((b) => !excludes(a.when, b.when))) &&
    carried.every((a) => all.every((b) => carried.includes(b) || !implies(a.when, b.when)))
  );
}

/** Whether no request fulfils both. A header may be sent twice, with different values. */
function excludes(a: NeedCondition, b: NeedCondition): boolean {
  if (a.kind === 'tenant' && b.kind === 'tenant') return a.value !== b.value;
  if (a.kind === 'path' && b.kind === 'path') {
    return !a.prefix.startsWith(b.prefix) && !b.prefix.startsWith(a.prefix);
  }
  return false;
}

/** Whether every request that fulfils `a` fulfils `b`. */
function implies(a: NeedCondition, b: NeedCondition): boolean {
  if (a.kind === 'tenant' && b.kind === 'tenant') return a.value === b.value;
  if (a.kind === 'path' && b.kind === 'path') return a.prefix.startsWith(b.prefix);
  if (a.kind === 'body' && b.kind === 'body') return a.feature === b.feature;
  // With its answer a prompt is not shorter.
  if (a.kind === 'promptTokens' && (b.kind === a.kind || b.kind === 'totalTokens')) return a.above >= b.above;
  if (a.kind === 'totalTokens' && b.kind === 'totalTokens') return a.above >= b.above;
  if (a.kind === 'header' && b.kind === 'header') {
    return a.name === b.name && (b.value === undefined || a.value === b.value);
  }
  return false;
}
