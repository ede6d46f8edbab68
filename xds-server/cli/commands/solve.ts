import type { Command } from 'commander';
import { loadConfig } from '../../config/load.js';
import { offlineInput } from '../../control/offline/offline.js';
import { type Changes, type DemandChange, type WhatIf, whatIf } from '../../control/questions/what-if.js';
import { Optimizer } from '../../optimizer/index.js';
import { percent } from '../../percent.js';
import { demandOption, withoutOption } from '../change-options.js';
import { ask, offlineConfig, type SourceOptions, withOfflineSource } from '../source.js';
import { formatTable, shortTable } from '../table.js';

interface SolveOptions extends SourceOptions {
  readonly without?: readonly string[];
  readonly demand?: readonly DemandChange[];
  readonly json?: boolean;
}

export function registerSolve(program: Command): void {
  withOfflineSource(
    program
      .command('solve')
      .summary('show what a change would do')
      .description(
        'Solve the live state as it is and with changes, and show both. Nothing is published. Without changes the ' +
          'two are the same.',
      )
      .option('--without <engine=id>', 'an engine that is gone; may be repeated', withoutOption)
      .option(
        '--demand <frontend=change>',
        'demand that differs: west=+30%, west=120 or west/POOL=120 in requests/s; may be repeated',
        demandOption,
      )
      .option('--json', 'print JSON'),
  ).action(async (options: SolveOptions) => {
    const changes = { without: options.without ?? [], demand: options.demand ?? [] };
    const result =
      options.offline === true ? await solveHere(options, changes) : await solveThere(options, changes);
    console.log(options.json === true ? JSON.stringify(result, null, 2) : describe(result));
  });
}

async function solveThere(options: SolveOptions, changes: Changes): Promise<WhatIf> {
  return JSON.parse(await ask(options, '/v1/what-if', { method: 'POST', body: changes })) as WhatIf;
}

async function solveHere(options: SolveOptions, changes: Changes): Promise<WhatIf> {
  const optimizer = new Optimizer();
  try {
    return await whatIf(optimizer, await offlineInput(loadConfig(offlineConfig(options))), changes);
  } finally {
    await optimizer.close();
  }
}

/** Of many rows those that a change makes a difference to. */
function describe({ rows, engines, ...result }: WhatIf): string {
  const weights = rows.flatMap(({ frontendId, poolId, weights }) =>
    weights.map((weight) => [frontendId, poolId, weight.engineId, ...both(weight, percent)]),
  );
  const demands = rows.map(({ frontendId, poolId, demandRps, refusedRps }) => [
    ...[frontendId, poolId, ...both(demandRps, rate), ...both(refusedRps, rate)],
  ]);
  const loads = engines.map(({ engineId, rho }) => [engineId, ...both(rho, percent)]);
  return [
    changed(['frontend', 'pool', 'requests/s', 'then', 'refused/s', 'then'], demands),
    changed(['frontend', 'pool', 'engine', 'weight', 'then'], weights),
    changed(['engine', 'utilisation', 'then'], loads),
    formatTable([
      ['user-seconds per second', 'now', 'then'],
      ['in all', ...both(result.objectiveSeconds, seconds)],
      ['with any weights, at least', ...both(result.lowerBoundSeconds, seconds)],
      ['not counted, as sizes differ', ...both(result.mixErrorSeconds, seconds)],
    ]),
    ...result.warnings.map((warning) => `warning: ${warning}`),
  ].join('\n\n');
}

/** Each cell below `then` is compared with the one before it. */
function changed(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const differs = (row: readonly string[]) =>
    heading.some((title, column) => title === 'then' && row[column] !== row[column - 1]);
  return shortTable(heading, rows, differs, (row) => row, 'which stay as they are');
}

function both(
  { before, after }: Record<'before' | 'after', number>,
  text: (value: number) => string,
): [string, string] {
  return [text(before), text(after)];
}

function rate(rps: number): string {
  return rps.toFixed(1);
}

function seconds(value: number): string {
  return (Math.round(value * 1_000) / 1_000 + 0).toFixed(3);
}
