import type { Command } from 'commander';
import { configSchema } from '../../config/schema/schema.js';

export function registerSchema(program: Command): void {
  program
    .command('schema')
    .summary('print the JSON Schema of the configuration')
    .description('Print the JSON Schema of the configuration file, for editors that complete and check YAML.')
    .action(() => {
      console.log(
        JSON.stringify(configSchema, (key, value: unknown) => (key === 'hint' ? undefined : value), 2),
      );
    });
}
