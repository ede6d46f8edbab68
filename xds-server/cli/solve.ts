import type { Command } from 'commander';
import { loadConfig } from '../config/load.js';
import { offlineInput } from '../control/offline.js';
import { type Changes, type DemandChange, type WhatIf, whatIf } from '../control/questions/what-if.js';
import { Optimizer } from '../optimizer/index.js';
import { percent } from '../percent.js';
import { demandOption, withoutOption } from './change-options.js';
import { ask, offlineConfig, type SourceOptions, withOfflineSource } from './source.js';
import { formatTable } from './table.js';

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

function describe(result: WhatIf): string {
  const { rows, engines, warnings } = result;
  const weights = rows.flatMap((row) =>
    row.weights.map(({ engineId, before, after }) => [
      row.frontendId,
      row.poolId,
      engineId,
      percent(before),
      percent(after),
    ]),
  );
  const demands = rows.map(({ frontendId, poolId, demandRps, refusedRps }) => [
    frontendId,
    poolId,
    demandRps.before.toFixed(1),
    demandRps.after.toFixed(1),
    refusedRps.before.toFixed(1),
    refusedRps.after.toFixed(1),
  ]);
  const loads = engines.map(({ engineId, rho }) => [engineId, percent(rho.before), percent(rho.after)]);
  return [
    formatTable([['frontend', 'pool', 'requests/s', 'then', 'refused/s', 'then'], ...demands]),
    formatTable([['frontend', 'pool', 'engine', 'weight', 'then'], ...weights]),
    formatTable([['engine', 'utilisation', 'then'], ...loads]),
    formatTable([
      ['user-seconds per second', 'now', 'then'],
      ['in all', ...seconds(result.objectiveSeconds)],
      ['with any weights, at least', ...seconds(result.lowerBoundSeconds)],
      ['not counted, as sizes differ', ...seconds(result.mixErrorSeconds)],
    ]),
    ...warnings.map((warning) => `warning: ${warning}`),
  ].join('\n\n');
}

function seconds({ before, after }: { readonly before: number; readonly after: number }): string[] {
  return [before, after].map((value) => (Math.round(value * 1_000) / 1_000 + 0).toFixed(3));
}
