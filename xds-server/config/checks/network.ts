import { suggest } from '../../suggest.js';
import type { NetworkTable } from '../network-table.js';
import type { Path } from '../problem.js';
import type { Partly } from '../schema/schema-type.js';
import type { Draft, Findings } from './findings.js';

export function checkNetwork(config: Draft, found: Findings, table: NetworkTable | undefined): void {
  const { network } = config;
  checkPairs(found, ['network', 'egressDollarsPerRequest'], network?.egressDollarsPerRequest ?? {});
  if (network?.rttMs !== undefined && network.table !== undefined) {
    found.problem(['network'], 'give either rttMs or table', { at: 'key' });
  } else if (network?.rttMs !== undefined) {
    checkMatrix(found, network.rttMs);
    checkScale(config, found, network.rttMs);
  } else if (table !== undefined) checkRegions(config, found, table);
  else if (network?.table === undefined && !isNetworkFaulty(found)) {
    const regions = new Set(
      [...(config.frontends ?? []), ...(config.engines ?? [])]
        .map((item) => item?.region)
        .filter((region) => region !== undefined),
    );
    if (regions.size > 1) {
      found.problem(['network'], `network is missing, but there are ${regions.size} regions`, {
        hint: 'give network.rttMs or network.table',
      });
    }
  }
}

function isNetworkFaulty(found: Findings): boolean {
  return found.faults.excuse([], ['network']) || found.faults.excuse(['network'], ['rttMs', 'table']);
}

/** Keys of a mapping by frontend, then engine. */
function checkPairs(
  found: Findings,
  path: Path,
  rows: Partly<Record<string, Record<string, number | null>>>,
): void {
  for (const [frontendId, row] of Object.entries(rows)) {
    found.known([...path, frontendId], 'frontend', frontendId, found.frontendIds, 'key');
    for (const engineId of Object.keys(row ?? {})) {
      found.known([...path, frontendId, engineId], 'engine', engineId, found.engineIds, 'key');
    }
  }
}

const MOST_NAMED = 5;

type RttMatrix = NonNullable<NonNullable<Draft['network']>['rttMs']>;

function checkMatrix(found: Findings, rttMs: RttMatrix): void {
  const path = ['network', 'rttMs'];
  checkPairs(found, path, rttMs);
  const meantRows = misspelt('frontend', Object.keys(rttMs), found.frontendIds, found);
  for (const frontendId of found.frontendIds) {
    if (meantRows.has(frontendId)) continue;
    const row = rttMs[frontendId];
    const meant = misspelt('engine', Object.keys(row ?? {}), found.engineIds, found);
    const missing = [...found.engineIds].filter(
      (engineId) =>
        row?.[engineId] === undefined &&
        !meant.has(engineId) &&
        !found.isWritten([...path, frontendId, engineId]),
    );
    if (missing.length > 0) {
      found.problem([...path, frontendId], `no round trip from ${frontendId} to ${named(missing)}`, {
        hint: 'write null where the engine cannot be reached',
      });
    } else if (Object.values(row ?? {}).every((value) => value === null)) {
      found.warn([...path, frontendId], `frontend ${frontendId} reaches no engine; its requests are refused`);
    }
  }
  const rows = [...found.frontendIds].map((frontendId) => rttMs[frontendId]);
  for (const engineId of found.engineIds) {
    if (rows.length > 0 && rows.every((row) => row?.[engineId] === null)) {
      found.warn(path, `engine ${engineId} is reached by no frontend; it gets no requests`);
    }
  }
}

function named(ids: readonly string[]): string {
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : '';
  return ids.slice(0, MOST_NAMED).join(', ') + more;
}

/** Distances between regions are never all below a millisecond. */
function checkScale(config: Draft, found: Findings, rttMs: RttMatrix): void {
  const regions = new Set(config.frontends?.concat(config.engines ?? []).map((item) => item?.region));
  let longest = 0;
  for (const row of Object.values(rttMs))
    for (const value of Object.values(row ?? {})) longest = Math.max(longest, value ?? 0);
  if (regions.size > 1 && longest > 0 && longest < 1) {
    found.warn(['network', 'rttMs'], 'all round trips are shorter than 1 ms', 'were they meant in seconds?');
  }
}

function checkRegions(config: Draft, found: Findings, table: NetworkTable): void {
  for (const [list, known, kind] of [
    ['frontends', table.sources, 'row'],
    ['engines', table.destinations, 'column'],
  ] as const) {
    for (const [index, item] of (config[list] ?? []).entries()) {
      if (item?.region === undefined || known.includes(item.region)) continue;
      found.problem(
        [list, index, 'region'],
        `region ${JSON.stringify(item.region)} is no ${kind} of the latency table`,
        { hint: suggest(item.region, known) },
      );
    }
  }
}

/** The known names for which others seem to be meant, and which are not there themselves. */
function misspelt(
  kind: 'frontend' | 'engine',
  names: readonly string[],
  known: ReadonlySet<string>,
  found: Findings,
): ReadonlySet<string> {
  const there = new Set(names);
  return new Set(
    names
      .filter((name) => !known.has(name))
      .map((name) => found.meant(kind, name, known))
      .filter((name) => name !== undefined && !there.has(name)) as string[],
  );
}
