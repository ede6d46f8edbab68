import type { Path } from '../../xds-server/config/problem.js';
import type { Fault, ScenarioEngine, ScenarioFrontend } from '../scenario.js';
import { day, type RateCurve, steps, withBursts } from '../workloads/rate-curve.js';
import type { Problems } from './problems.js';
import type { DemandEntry, FaultEntry } from './schema.js';

/** How many requests come over time. */
export function buildRate(entry: Omit<DemandEntry, 'workload'>): RateCurve {
  const { requestsPerSecond, day: dayEntry, bursts } = entry;
  const points = [...entry.steps].sort((a, b) => a.at - b.at);
  const stepped = steps(
    [0, requestsPerSecond],
    ...points.map(({ at, requestsPerSecond: rate }): [number, number] => [at, rate]),
  );
  const curve =
    dayEntry === undefined
      ? stepped
      : product(stepped, day(1, dayEntry.peakToTrough, dayEntry.lengthSeconds, dayEntry.phase));
  if (bursts === undefined) return curve;
  const { times, everySeconds, forSeconds, from } = bursts;
  return withBursts(curve, { times, everySeconds, forSeconds, fromSeconds: from });
}

function product(a: RateCurve, b: RateCurve): RateCurve {
  return { at: (seconds) => a.at(seconds) * b.at(seconds), peak: a.peak * b.peak };
}

/** Undefined when the entry names what is not there. */
export function buildFault(
  {
    kind,
    from,
    until = Number.POSITIVE_INFINITY,
    engine,
    region,
    frontend,
    slowness,
    extraDelaySeconds,
  }: FaultEntry,
  path: Path,
  fleet: {
    readonly engines: readonly Pick<ScenarioEngine, 'id' | 'engineId' | 'region'>[];
    readonly frontends: readonly Pick<ScenarioFrontend, 'id' | 'region'>[];
  },
  problems: Problems,
): Fault | undefined {
  const times = { from, until };
  if (until <= from) problems.add([...path, 'until'], `must be after from, ${from} s`);
  /** The one of these that is named under the fault's `key`; undefined when it is none. */
  const named = (
    key: 'engine' | 'region' | 'frontend',
    name: string | undefined,
    known: readonly string[],
  ) => {
    if (name === undefined)
      problems.add(path, `missing key "${key}"`, `${kind} needs one of ${known.join(', ')}`);
    else if (known.includes(name)) return name;
    else problems.unknown([...path, key], key, name, known);
    return undefined;
  };
  switch (kind) {
    case 'engine-down':
    case 'slow-engine': {
      const known = [...new Set(fleet.engines.flatMap(({ id, engineId }) => [engineId, id]))];
      const found = named('engine', engine, known);
      if (found === undefined) return undefined;
      return kind === 'engine-down'
        ? { ...times, kind, engine: found }
        : { ...times, kind, engine: found, slowness };
    }
    case 'region-cut': {
      const known = [...new Set([...fleet.frontends, ...fleet.engines].map((place) => place.region))];
      const found = named('region', region, known);
      return found === undefined ? undefined : { ...times, kind, region: found };
    }
    case 'frontend-silent': {
      const found = named(
        'frontend',
        frontend,
        fleet.frontends.map(({ id }) => id),
      );
      return found === undefined ? undefined : { ...times, kind, frontend: found };
    }
    case 'stale-signals':
      return { ...times, kind, extraDelaySeconds };
    case 'control-down':
    case 'frozen-signals':
      return { ...times, kind };
  }
}
