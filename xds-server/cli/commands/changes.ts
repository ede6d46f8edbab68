import type { Command } from 'commander';
import { planOption } from '../plan-option.js';
import { ask, type SourceOptions, withSource } from '../source.js';

interface ChangesOptions extends SourceOptions {
  readonly since?: string;
  readonly json?: boolean;
}

export function registerChanges(program: Command): void {
  withSource(
    program
      .command('changes')
      .summary('say which input changed which weight')
      .description(
        'Say which input (demand, capacity, network, profiles, configuration, time) changed which weight between an ' +
          'earlier plan and the one in force, by solving again with one kind of input exchanged after the other.',
      )
      .option('--since <plan>', 'number or id of the earlier plan (default: the one before)', planOption)
      .option('--json', 'print JSON'),
  ).action(async (options: ChangesOptions) => {
    const query = options.since === undefined ? '' : `?${new URLSearchParams({ since: options.since })}`;
    const accept = options.json === true ? 'application/json' : 'text/plain';
    console.log((await ask(options, `/v1/changes${query}`, { accept })).trimEnd());
  });
}
