import type { Command } from 'commander';
import { loadConfig } from '../../config/load.js';
import { formatProblem } from '../../config/problem.js';
import type { Fleet } from '../../fleet/fleet.js';

export function registerValidate(program: Command): void {
  program
    .command('validate')
    .summary('check a configuration')
    .description('Check a configuration file and list every problem with file, line, column and what to do.')
    .requiredOption('-c, --config <file>', 'configuration file')
    .action(({ config: file }: { config: string }) => {
      const { fleet, profiles, warnings } = loadConfig(file);
      for (const warning of warnings) console.error(`warning: ${formatProblem(warning)}`);
      const counts = [
        count(fleet.frontends.length, 'frontend'),
        count(fleet.engines.length, 'engine'),
        count(fleet.pools.length, 'pool'),
        count(profiles.size, 'profile'),
      ];
      console.log(`${file} is valid: ${counts.join(', ')}`);
      for (const line of poolLines(fleet)) console.log(line);
    });
}

/** For each model that needs make a difference to, its pools with who is in them, and needs that it is refused with. */
function poolLines({ pools, modelNeeds = [] }: Fleet): readonly string[] {
  return modelNeeds.flatMap(({ model, needs, poolIds }) => {
    const mine = pools.filter((pool) => pool.model === model);
    const refused = needs.filter((_, bit) =>
      poolIds.every((id, needSet) => !((needSet >> bit) & 1) || id === null),
    );
    return [
      `${model}: ${count(mine.length, 'pool')} by ${count(needs.length, 'need')}: ${needs.join(', ')}`,
      ...mine.map(({ id, engineIds }) => `  ${id}: ${engineIds.join(', ')}`),
      ...(refused.length === 0 ? [] : [`  refused, as no engine meets it: ${refused.join(', ')}`]),
    ];
  });
}

function count(n: number, what: string): string {
  return n === 1 ? `1 ${what}` : `${n} ${what}s`;
}
