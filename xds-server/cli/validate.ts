import type { Command } from 'commander';
import { loadConfig } from '../config/load.js';
import { formatProblem } from '../config/problem.js';
import type { Fleet } from '../fleet/fleet.js';

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
        `${fleet.frontends.length} frontends`,
        `${fleet.engines.length} engines`,
        `${fleet.pools.length} pools`,
        `${profiles.size} profiles`,
      ];
      console.log(`${file} is valid: ${counts.join(', ')}`);
      for (const line of poolLines(fleet)) console.log(line);
    });
}

/** For each model that needs make a difference to, its pools and who is in them. */
function poolLines({ pools, modelNeeds = [] }: Fleet): readonly string[] {
  return modelNeeds.flatMap(({ model, needs }) => {
    const mine = pools.filter((pool) => pool.model === model);
    const count = mine.length === 1 ? '1 pool' : `${mine.length} pools`;
    return [
      `${model}: ${count} by the needs ${needs.join(', ')}`,
      ...mine.map(({ id, engineIds }) => `  ${id}: ${engineIds.join(', ')}`),
    ];
  });
}
