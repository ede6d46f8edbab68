import type { Command } from 'commander';
import { loadConfig } from '../config/load.js';
import { formatProblem } from '../config/problem.js';

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
    });
}
