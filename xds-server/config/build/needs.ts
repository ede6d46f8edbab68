import type { NeedCondition } from '../../../wire/snapshot-view.js';
import { byId, byName } from '../../collections.js';
import type { Alias, Engine, Fleet, Pool } from '../../fleet/fleet.js';
import type { Need } from '../../fleet/needs.js';
import { poolsOfModel } from '../../fleet/pools.js';
import type { PriorityClass } from '../../fleet/priority-class.js';
import type { ConfigFile } from '../schema/schema.js';

type NeedEntry = ConfigFile['needs'][string];
type ClassEntry = ConfigFile['classes'][string];

/** The needs of a file, sorted by id. */
export function buildNeeds(entries: ConfigFile['needs']): readonly Need[] {
  return Object.entries(entries)
    .map(([id, entry]) => ({ id, when: conditionOf(entry.when), labels: labelsOf(entry) }))
    .sort(byId);
}

function conditionOf({
  header,
  hasHeader,
  path,
  tenant,
  body,
  promptTokens,
  totalTokens,
}: Partial<NeedEntry['when']>): NeedCondition {
  if (header !== undefined) {
    const [name, value] = Object.entries(header)[0]!;
    return { kind: 'header', name: name.toLowerCase(), value };
  }
  if (hasHeader !== undefined) return { kind: 'header', name: hasHeader.toLowerCase() };
  if (path !== undefined) return { kind: 'path', prefix: path };
  if (tenant !== undefined) return { kind: 'tenant', value: tenant };
  if (body !== undefined) return { kind: 'body', feature: body };
  if (promptTokens !== undefined) return { kind: 'promptTokens', above: promptTokens };
  return { kind: 'totalTokens', above: totalTokens! };
}

/** The classes of a file in its order, which counts. */
export function buildClasses(entries: ConfigFile['classes']): readonly PriorityClass[] {
  return Object.entries(entries).map(([id, { priority, when }]) => ({
    id,
    priority,
    when: classConditionOf(when),
  }));
}

function classConditionOf({ serviceTier, priorityAbove, ...when }: ClassEntry['when']): NeedCondition {
  if (serviceTier !== undefined) return { kind: 'serviceTier', value: serviceTier };
  if (priorityAbove !== undefined) return { kind: 'priority', above: priorityAbove };
  return conditionOf(when);
}

function labelsOf({ engines, refuse }: NeedEntry): Need['labels'] {
  if (refuse) return null;
  return Object.fromEntries(
    Object.entries(engines ?? {}).map(([label, values]) => [
      label,
      typeof values === 'string' ? [values] : values,
    ]),
  );
}

/** Pools of all models, and which of them a request with certain needs gets; `engines` sorted by id. */
export function buildPools(
  engines: readonly Pick<Engine, 'id' | 'models' | 'labels'>[],
  needs: readonly Need[],
): Pick<Fleet, 'pools' | 'needs' | 'modelNeeds'> {
  const models = [...new Set(engines.flatMap((engine) => engine.models))].sort();
  const built = models.map((model) => poolsOfModel(model, engines, needs));
  const pools: readonly Pool[] = built.flatMap((entry) => entry.pools).sort(byId);
  const modelNeeds = built.map((entry) => entry.modelNeeds).filter((entry) => entry.needs.length > 0);
  if (modelNeeds.length === 0) return { pools };
  const used = new Set(modelNeeds.flatMap((entry) => entry.needs));
  return { pools, needs: needs.filter(({ id }) => used.has(id)), modelNeeds };
}

export function buildAliases(aliases: ConfigFile['aliases']): readonly Alias[] {
  return Object.entries(aliases)
    .map(([name, model]) => ({ name, model }))
    .sort(byName);
}
