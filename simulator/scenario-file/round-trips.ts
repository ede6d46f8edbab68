import { readFileSync } from 'node:fs';
import { parseNetworkTable } from '../../xds-server/config/network-table.js';
import { packageFile } from '../../xds-server/package-file.js';
import type { Problems } from './problems.js';
import type { EngineEntry, FrontendEntry, ScenarioFile } from './schema.js';

/** `[frontend][engine entry]` in milliseconds. */
export function roundTrips(
  { frontends = [], engines = [], network }: ScenarioFile,
  problems: Problems,
): number[][] | undefined {
  if (network?.regions !== undefined) return azureRoundTrips(frontends, engines, problems);
  if (network?.rttMs === undefined) return frontends.map(() => engines.map(() => 0));
  const { rttMs } = network;
  let isWhole = true;
  const rows = frontends.map(({ id }) =>
    engines.map((engine) => {
      const ms = rttMs[id]?.[engine.id];
      if (ms === undefined) {
        isWhole = false;
        problems.add(
          ['network', 'rttMs', ...(id in rttMs ? [id] : [])],
          `lacks the way from ${id} to ${engine.id}`,
        );
      }
      return ms ?? 0;
    }),
  );
  return isWhole ? rows : undefined;
}

function azureRoundTrips(
  frontends: readonly FrontendEntry[],
  engines: readonly EngineEntry[],
  problems: Problems,
): number[][] | undefined {
  const file = packageFile('simulator', 'data', 'azure-rtt-ms.csv');
  const result = parseNetworkTable(readFileSync(file, 'utf8'), file);
  if (!('table' in result)) throw new Error(`${file} is damaged`);
  const { sources, destinations, rttMs } = result.table;
  const short = (names: readonly string[]) => names.map((name) => name.replaceAll(' ', ''));
  const place = (
    names: readonly string[],
    { id, region = id }: EngineEntry | FrontendEntry,
    path: string[],
  ) => {
    const index = short(names).indexOf(region);
    if (index < 0) problems.unknown(path, 'region', region, short(names));
    return index;
  };
  const rows = frontends.map((frontend, index) =>
    place(sources, frontend, ['frontends', `${index}`, 'region']),
  );
  const columns = engines.map((engine, index) =>
    place(destinations, engine, ['engines', `${index}`, 'region']),
  );
  if (rows.includes(-1) || columns.includes(-1)) return undefined;
  return rows.map((row) => columns.map((column) => rttMs[row]![column]!));
}
