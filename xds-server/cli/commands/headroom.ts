import type { Command } from 'commander';
import { sum } from '../../collections.js';
import { loadConfig } from '../../config/load.js';
import { offlineInput } from '../../control/offline/offline.js';
import { type Growth, type Headroom, headroom, MOST_GROWTH } from '../../control/questions/headroom.js';
import { Optimizer } from '../../optimizer/index.js';
import { percent } from '../../percent.js';
import { ask, offlineConfig, type SourceOptions, withOfflineSource } from '../source.js';
import { formatTable, shortTable } from '../table.js';
import { UsageError } from '../usage-error.js';

/** Of an engine. */
const MOST_REFUSED = 5;

interface HeadroomOptions extends SourceOptions {
  readonly json?: boolean;
}

export function registerHeadroom(program: Command): void {
  withOfflineSource(
    program
      .command('headroom')
      .summary('show what can be lost and what can grow')
      .description(
        'How many requests the fleet can take. For each engine: who is refused if it dies. For each frontend, and ' +
          'for all together: how much demand can grow, each as it is mixed now, before any request is refused.',
      )
      .option('--json', 'print JSON'),
  ).action(async (options: HeadroomOptions) => {
    const result =
      options.offline === true
        ? await headroomHere(options)
        : (JSON.parse(await ask(options, '/v1/headroom')) as Headroom);
    if (options.json !== true && result.frontends.some(({ refusedRps }) => refusedRps === undefined)) {
      throw new UsageError('the control server is of another version: restart it, or ask with --offline', 1);
    }
    console.log(options.json === true ? JSON.stringify(result, null, 2) : describe(result));
  });
}

async function headroomHere(options: HeadroomOptions): Promise<Headroom> {
  const optimizer = new Optimizer();
  try {
    return await headroom(optimizer, await offlineInput(loadConfig(offlineConfig(options))));
  } finally {
    await optimizer.close();
  }
}

function describe({ refusedRps, engines, frontends, together }: Headroom): string {
  const rows = [
    ...frontends.map((frontend) => ({ ...frontend, of: frontend.frontendId })),
    ...(frontends.length === 1 ? [] : [{ ...together, refusedRps, of: 'all together' }]),
  ];
  const isRefusing = refusedRps > 0;
  const growths = rows.map((row) => {
    const [now, ...grown] = growthCells(row);
    return [row.of, now!, ...(isRefusing ? [row.refusedRps.toFixed(1)] : []), ...grown];
  });
  return [
    ...(isRefusing
      ? [
          `${refusedRps.toFixed(1)} of ${together.rps.toFixed(1)} requests/s are refused now, and nobody can grow. What is refused without an engine includes them.`,
        ]
      : []),
    shortTable(
      ['without engine', 'refused', 'pools with nobody', 'then fullest'],
      engines,
      ({ refused, lostPools }) => refused.length + lostPools.length > 0,
      lossCells,
      'without each of which nobody is refused',
    ),
    formatTable([
      ['frontend', 'requests/s', ...(isRefusing ? ['refused/s'] : []), 'can grow to', 'by'],
      ...growths,
    ]),
  ].join('\n\n');
}

function lossCells({ engineId, refused, lostPools, fullest }: Headroom['engines'][number]): string[] {
  return [
    engineId,
    refused.length === 0 ? 'nobody' : refusedText(refused),
    lostPools.join(', ') || '-',
    fullest === null ? 'none is left' : `${fullest.engineId} at ${percent(fullest.rho)}`,
  ];
}

/** Of many, those who lose most. */
function refusedText(refused: readonly Refused[]): string {
  const shown = refused.length <= MOST_REFUSED ? refused : refused.toSorted((a, b) => b.rps - a.rps);
  const texts = shown
    .slice(0, MOST_REFUSED)
    .map(
      ({ frontendId, poolId, rps, byPriority }) =>
        `${rps.toFixed(1)}/s of ${frontendId} to ${poolId}${ofPriorities(byPriority)}`,
    );
  const rest = shown.slice(MOST_REFUSED);
  if (rest.length === 0) return texts.join(', ');
  return `${texts.join(', ')} and ${sum(rest.map(({ rps }) => rps)).toFixed(1)}/s of ${rest.length} more`;
}

function growthCells({ rps, growth }: Growth): readonly string[] {
  if (growth !== null) return [rps.toFixed(1), (rps * growth).toFixed(1), `× ${growth.toFixed(2)}`];
  return [rps.toFixed(1), ...(rps === 0 ? ['-', '-'] : ['more', `× ${MOST_GROWTH} and more`])];
}

type Refused = Headroom['engines'][number]['refused'][number];

/** Nothing where there are no classes to tell apart. */
function ofPriorities(parts: Refused['byPriority']): string {
  if (parts.every(({ priority }) => priority === 0)) return '';
  return ` (${parts.map(({ priority, rps }) => `${rps.toFixed(1)} of priority ${priority}`).join(', ')})`;
}
