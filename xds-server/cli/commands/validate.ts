import type { Command } from 'commander';
import { loadConfig } from '../../config/load.js';
import { formatProblem } from '../../config/problem.js';
import { endingCertificates } from '../../control/alarms/alarm-rules.js';
import type { Fleet } from '../../fleet/fleet.js';
import type { ModelNeeds } from '../../fleet/needs.js';

export function registerValidate(program: Command): void {
  program
    .command('validate')
    .summary('check a configuration')
    .description('Check a configuration file and list every problem with file, line, column and what to do.')
    .requiredOption('-c, --config <file>', 'configuration file')
    .action(({ config: file }: { config: string }) => {
      const { fleet, profiles, warnings, certificates } = loadConfig(file);
      for (const warning of warnings) console.error(`warning: ${formatProblem(warning)}`);
      for (const ending of endingCertificates(certificates, Date.now()).values()) {
        console.error(`warning: ${ending}`);
      }
      const counts = [
        count(fleet.frontends.length, 'frontend'),
        count(fleet.engines.length, 'engine'),
        count(fleet.pools.length, 'pool'),
        count(profiles.size, 'profile'),
      ];
      console.log(`${file} is valid: ${counts.join(', ')}`);
      for (const line of modelLines(fleet)) console.log(line);
    });
}

/** Of more engines only the number is told, where no need tells them apart. */
const MOST_ENGINES = 20;

/** Each model with its other names, pools and who is in these, and the needs that it is refused with. */
function modelLines({ pools, modelNeeds = [], aliases = [] }: Fleet): readonly string[] {
  const models = [...new Set(pools.map(({ model }) => model))];
  return models.flatMap((model) => {
    const names = aliases.filter((alias) => alias.model === model).map(({ name }) => name);
    const known = names.length === 0 ? model : `${model} (also ${names.join(', ')})`;
    const mine = pools.filter((pool) => pool.model === model);
    const differing = modelNeeds.find((each) => each.model === model);
    if (differing === undefined) return mine.map(({ engineIds }) => `${known}: ${engineList(engineIds)}`);
    return [
      `${known}: ${count(mine.length, 'pool')} by ${count(differing.needs.length, 'need')}: ${differing.needs.join(', ')}`,
      ...mine.map(({ id, engineIds }) => `  ${id}: ${engineIds.join(', ')}`),
      ...refusedLine(differing),
    ];
  });
}

function engineList(ids: readonly string[]): string {
  return ids.length > MOST_ENGINES ? count(ids.length, 'engine') : ids.join(', ');
}

function refusedLine({ needs, poolIds }: ModelNeeds): readonly string[] {
  const refused = needs.filter((_, bit) =>
    poolIds.every((id, needSet) => !((needSet >> bit) & 1) || id === null),
  );
  return refused.length === 0 ? [] : [`  refused, as no engine meets it: ${refused.join(', ')}`];
}

function count(n: number, what: string): string {
  return n === 1 ? `1 ${what}` : `${n} ${what}s`;
}
